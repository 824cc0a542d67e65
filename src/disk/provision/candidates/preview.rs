//! The attempts of a create with a known stock, without a create.

use super::attempt_order::StockView;
use super::{Candidate, Selection};
use crate::model::ZoneStock;

/// The stock of a region, as `DescribeAvailableResource` reports it; `None` if unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RegionStock {
    pub zonal: Option<Vec<ZoneStock>>,
    pub regional: Option<Vec<ZoneStock>>,
}

/// The candidates in the order of attempts while this stock is cached, and whether each is in stock.
#[must_use]
pub fn attempts_with_stock(selection: &Selection, stock: &RegionStock) -> Vec<(Candidate, Option<bool>)> {
    let view = StockView::default();
    for (regional, zones) in [(false, &stock.zonal), (true, &stock.regional)] {
        if let Some(zones) = zones {
            view.stock.remember(regional, zones.clone());
        }
    }
    let mut order: Vec<_> = selection.candidates.iter().collect();
    view.sort(&mut order);
    let attempts = order.into_iter();
    attempts
        .map(|candidate| (candidate.clone(), view.stock.is_in_stock(candidate)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Category, Gib, Stock};

    #[test]
    fn candidates_out_of_stock_come_last() {
        let candidate = |zone: &str, category: Category| Candidate {
            zone: Some(zone.parse().unwrap()),
            category,
            level: None,
            size: Gib(40),
        };
        let first = candidate("a", Category::CloudSsd);
        let second = candidate("a", Category::CloudEssd);
        let selection = Selection {
            candidates: vec![first.clone(), second.clone()],
            excluded: Vec::new(),
        };
        let unknown = attempts_with_stock(&selection, &RegionStock::default());
        assert_eq!(unknown, [(first.clone(), None), (second.clone(), None)]);
        let stock = Stock {
            category: Category::CloudEssd,
            available: true,
        };
        let stock = RegionStock {
            zonal: Some(vec![ZoneStock {
                zone: second.zone.clone(),
                categories: vec![stock],
            }]),
            regional: None,
        };
        let known = attempts_with_stock(&selection, &stock);
        assert_eq!(known, [(second, Some(true)), (first, Some(false))]);
    }
}
