//! Where a region's ECS API and its Security Token Service answer.

use crate::model::RegionId;

/// Hosts that several regions share.
const CENTRAL: &str = "ecs.aliyuncs.com";
const HANGZHOU: &str = "ecs-cn-hangzhou.aliyuncs.com";
const NEBULA: &str = "ecs.cn-qingdao-nebula.aliyuncs.com";
const CENTRAL_STS: &str = "sts.aliyuncs.com";

/// Regions whose hosts do not follow the rule, with their hosts of ECS and of STS, as the vendor's
/// SDKs carry them. No STS host means that the one of the rule answers.
const EXCEPTIONS: &[(&str, &str, Option<&str>)] = &[
    ("ap-northeast-2-pop", CENTRAL, Some(CENTRAL_STS)),
    ("cn-beijing-finance-1", CENTRAL, Some(CENTRAL_STS)),
    ("cn-beijing-finance-pop", CENTRAL, Some(CENTRAL_STS)),
    ("cn-beijing-gov-1", CENTRAL, Some(CENTRAL_STS)),
    ("cn-beijing-nu16-b01", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-edge-1", NEBULA, Some(CENTRAL_STS)),
    ("cn-fujian", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-haidian-cm12-c01", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-hangzhou", HANGZHOU, None),
    ("cn-hangzhou-bj-b01", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-hangzhou-finance", CENTRAL, Some(CENTRAL_STS)),
    ("cn-hangzhou-internal-prod-1", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-hangzhou-internal-test-1", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-hangzhou-internal-test-2", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-hangzhou-internal-test-3", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-hangzhou-test-306", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-hongkong-finance-pop", CENTRAL, Some(CENTRAL_STS)),
    ("cn-huhehaote-nebula-1", NEBULA, Some(CENTRAL_STS)),
    (
        "cn-north-2-gov-1",
        CENTRAL,
        Some("sts-vpc.cn-north-2-gov-1.aliyuncs.com"),
    ),
    ("cn-qingdao-nebula", NEBULA, Some(CENTRAL_STS)),
    ("cn-shanghai-et15-b01", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-shanghai-et2-b01", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-shanghai-finance-1", HANGZHOU, None),
    ("cn-shanghai-inner", CENTRAL, Some(CENTRAL_STS)),
    ("cn-shanghai-internal-test-1", HANGZHOU, Some(CENTRAL_STS)),
    (
        "cn-shenzhen-finance-1",
        HANGZHOU,
        Some("sts-vpc.cn-shenzhen-finance-1.aliyuncs.com"),
    ),
    ("cn-shenzhen-inner", CENTRAL, Some(CENTRAL_STS)),
    ("cn-shenzhen-st4-d01", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-shenzhen-su18-b01", HANGZHOU, Some(CENTRAL_STS)),
    ("cn-wuhan", CENTRAL, Some(CENTRAL_STS)),
    ("cn-yushanfang", CENTRAL, Some(CENTRAL_STS)),
    ("cn-zhangbei", CENTRAL, Some(CENTRAL_STS)),
    ("cn-zhangbei-na61-b01", HANGZHOU, Some(CENTRAL_STS)),
    (
        "cn-zhangjiakou-na62-a01",
        "ecs.cn-zhangjiakou.aliyuncs.com",
        Some(CENTRAL_STS),
    ),
    ("cn-zhengzhou-nebula-1", NEBULA, Some(CENTRAL_STS)),
    (
        "eu-west-1-oxs",
        "ecs.cn-shenzhen-cloudstone.aliyuncs.com",
        Some(CENTRAL_STS),
    ),
    ("rus-west-1-pop", CENTRAL, Some(CENTRAL_STS)),
];

/// Which network the API is reached over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Network {
    /// The internet.
    #[default]
    Public,
    /// The region's own network, from within it.
    Vpc,
}

/// The URL of the region's ECS API, always HTTPS. The exceptions come before the network, as in the
/// vendor's SDKs: those regions have the one host.
pub fn of_region(region: &RegionId, network: Network) -> String {
    match exception(region) {
        Some((host, _)) => format!("https://{host}"),
        None => by_rule("ecs", region, network),
    }
}

/// The URL of the region's Security Token Service, by the same rules.
pub fn sts_of_region(region: &RegionId, network: Network) -> String {
    match exception(region) {
        Some((_, Some(host))) => format!("https://{host}"),
        Some((_, None)) | None => by_rule("sts", region, network),
    }
}

/// Whether the region has only one host for the ECS API, whatever the network.
pub fn has_one_host(region: &RegionId) -> bool {
    exception(region).is_some()
}

fn exception(region: &RegionId) -> Option<(&'static str, Option<&'static str>)> {
    EXCEPTIONS
        .iter()
        .find(|(name, _, _)| *name == region.as_str())
        .map(|(_, ecs, sts)| (*ecs, *sts))
}

fn by_rule(product: &str, region: &RegionId, network: Network) -> String {
    match network {
        Network::Public => format!("https://{product}.{region}.aliyuncs.com"),
        Network::Vpc => format!("https://{product}-vpc.{region}.aliyuncs.com"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(region: &str, network: Network) -> (String, String) {
        let region = region.parse().unwrap();
        let host = |url: String| url.strip_prefix("https://").unwrap().to_owned();
        (
            host(of_region(&region, network)),
            host(sts_of_region(&region, network)),
        )
    }

    #[test]
    fn a_region_has_its_own_hosts_on_either_network() {
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
    fn the_exceptions_come_before_the_network() {
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
            assert!(has_one_host(&region.parse().unwrap()), "{region}");
        }
    }

    #[test]
    fn hangzhou_and_shanghai_finance_have_a_shared_host_for_disks_alone() {
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
    fn no_region_is_named_twice() {
        let mut names: Vec<_> = EXCEPTIONS.iter().map(|(name, _, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), EXCEPTIONS.len());
    }
}
