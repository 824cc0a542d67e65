//! The endpoints of a region's ECS API and Security Token Service.

use crate::model::RegionId;

/// Hosts that several regions share.
const CENTRAL: &str = "ecs.aliyuncs.com";
const HANGZHOU: &str = "ecs-cn-hangzhou.aliyuncs.com";
const NEBULA: &str = "ecs.cn-qingdao-nebula.aliyuncs.com";
const CENTRAL_STS: &str = "sts.aliyuncs.com";

/// Regions with other host names, grouped by their ECS and STS hosts, as in the vendor's SDKs.
/// Without an STS host, the regular one applies.
const EXCEPTIONS: &[(&str, Option<&str>, &str)] = &[
    (
        CENTRAL,
        Some(CENTRAL_STS),
        "ap-northeast-2-pop cn-beijing-finance-1 cn-beijing-finance-pop cn-beijing-gov-1 cn-hangzhou-finance
         cn-hongkong-finance-pop cn-shanghai-inner cn-shenzhen-inner cn-wuhan cn-yushanfang cn-zhangbei
         rus-west-1-pop",
    ),
    (
        HANGZHOU,
        Some(CENTRAL_STS),
        "cn-beijing-nu16-b01 cn-fujian cn-haidian-cm12-c01 cn-hangzhou-bj-b01 cn-hangzhou-internal-prod-1
         cn-hangzhou-internal-test-1 cn-hangzhou-internal-test-2 cn-hangzhou-internal-test-3
         cn-hangzhou-test-306 cn-shanghai-et15-b01 cn-shanghai-et2-b01 cn-shanghai-internal-test-1
         cn-shenzhen-st4-d01 cn-shenzhen-su18-b01 cn-zhangbei-na61-b01",
    ),
    (HANGZHOU, None, "cn-hangzhou cn-shanghai-finance-1"),
    (
        NEBULA,
        Some(CENTRAL_STS),
        "cn-edge-1 cn-huhehaote-nebula-1 cn-qingdao-nebula cn-zhengzhou-nebula-1",
    ),
    (
        CENTRAL,
        Some("sts-vpc.cn-north-2-gov-1.aliyuncs.com"),
        "cn-north-2-gov-1",
    ),
    (
        HANGZHOU,
        Some("sts-vpc.cn-shenzhen-finance-1.aliyuncs.com"),
        "cn-shenzhen-finance-1",
    ),
    (
        "ecs.cn-zhangjiakou.aliyuncs.com",
        Some(CENTRAL_STS),
        "cn-zhangjiakou-na62-a01",
    ),
    (
        "ecs.cn-shenzhen-cloudstone.aliyuncs.com",
        Some(CENTRAL_STS),
        "eu-west-1-oxs",
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Network {
    /// The public endpoints of the region.
    #[default]
    Public,
    /// The VPC endpoints of the region.
    Vpc,
}

/// The URL of the region's ECS API, always HTTPS. Exceptions take precedence over the network, as in the vendor's SDKs.
pub fn ecs_url(region: &RegionId, network: Network) -> String {
    let host = exception(region).map(|(ecs, _)| ecs);
    url(host, "ecs", region, network)
}

/// The URL of the region's Security Token Service, by the same rules.
pub fn sts_url(region: &RegionId, network: Network) -> String {
    let host = exception(region).and_then(|(_, sts)| sts);
    url(host, "sts", region, network)
}

/// Whether the region has the same ECS host on both networks.
pub fn has_single_host(region: &RegionId) -> bool {
    exception(region).is_some()
}

fn exception(region: &RegionId) -> Option<(&'static str, Option<&'static str>)> {
    let has = |regions: &str| {
        regions
            .split_whitespace()
            .any(|name| name == region.as_str())
    };
    let exception = EXCEPTIONS.iter().find(|(.., regions)| has(regions))?;
    Some((exception.0, exception.1))
}

fn url(host: Option<&str>, product: &str, region: &RegionId, network: Network) -> String {
    match (host, network) {
        (Some(host), _) => format!("https://{host}"),
        (None, Network::Public) => format!("https://{product}.{region}.aliyuncs.com"),
        (None, Network::Vpc) => format!("https://{product}-vpc.{region}.aliyuncs.com"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(region: &str, network: Network) -> (String, String) {
        let region = region.parse().unwrap();
        let host = |url: String| url.strip_prefix("https://").unwrap().to_owned();
        (
            host(ecs_url(&region, network)),
            host(sts_url(&region, network)),
        )
    }

    #[test]
    fn a_region_has_separate_hosts_per_network() {
        assert_eq!(
            hosts("cn-beijing", Network::Public),
            (
                "ecs.cn-beijing.aliyuncs.com".to_owned(),
                "sts.cn-beijing.aliyuncs.com".to_owned()
            )
        );
        assert_eq!(
            hosts("eu-central-1", Network::Vpc),
            (
                "ecs-vpc.eu-central-1.aliyuncs.com".to_owned(),
                "sts-vpc.eu-central-1.aliyuncs.com".to_owned()
            )
        );
    }

    #[test]
    fn exceptions_take_precedence_over_the_network() {
        for (region, ecs, sts) in [
            ("cn-wuhan", CENTRAL, CENTRAL_STS),
            ("cn-zhangbei", CENTRAL, CENTRAL_STS),
            ("cn-hangzhou-finance", CENTRAL, CENTRAL_STS),
            ("cn-beijing-gov-1", CENTRAL, CENTRAL_STS),
            (
                "cn-north-2-gov-1",
                CENTRAL,
                "sts-vpc.cn-north-2-gov-1.aliyuncs.com",
            ),
            (
                "cn-shenzhen-finance-1",
                HANGZHOU,
                "sts-vpc.cn-shenzhen-finance-1.aliyuncs.com",
            ),
            ("cn-qingdao-nebula", NEBULA, CENTRAL_STS),
            ("cn-hangzhou-internal-test-2", HANGZHOU, CENTRAL_STS),
            (
                "cn-zhangjiakou-na62-a01",
                "ecs.cn-zhangjiakou.aliyuncs.com",
                CENTRAL_STS,
            ),
        ] {
            for network in [Network::Public, Network::Vpc] {
                let wanted = (ecs.to_owned(), sts.to_owned());
                assert_eq!(hosts(region, network), wanted, "{region}");
            }
            assert!(has_single_host(&region.parse().unwrap()), "{region}");
        }
    }

    #[test]
    fn hangzhou_and_shanghai_finance_share_only_the_ecs_host() {
        assert_eq!(
            hosts("cn-hangzhou", Network::Vpc),
            (
                HANGZHOU.to_owned(),
                "sts-vpc.cn-hangzhou.aliyuncs.com".to_owned()
            )
        );
        assert_eq!(hosts("cn-shanghai-finance-1", Network::Public).0, HANGZHOU);
    }

    #[test]
    fn every_region_is_listed_once() {
        let names = EXCEPTIONS
            .iter()
            .flat_map(|(.., names)| names.split_whitespace());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!((names.len(), all), (37, 37));
    }
}
