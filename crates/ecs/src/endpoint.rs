//! The endpoints of a region's ECS API and Security Token Service.

use crate::model::RegionId;

/// Hosts that several regions share.
const CENTRAL: &str = "ecs.aliyuncs.com";
const HANGZHOU: &str = "ecs-cn-hangzhou.aliyuncs.com";
const NEBULA: &str = "ecs.cn-qingdao-nebula.aliyuncs.com";
const CENTRAL_STS: &str = "sts.aliyuncs.com";

/// Regions whose public ECS and STS hosts have other names, as in the vendor's SDKs. Without an STS host, the regular
/// one applies.
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

/// Exceptions with regular VPC hosts. The vendor's SDKs return the public hosts for them on both networks, which a VPC
/// without internet access cannot reach.
const WITH_VPC: [&str; 4] = [
    "cn-hangzhou",
    "cn-beijing-finance-1",
    "cn-shanghai-finance-1",
    "cn-shenzhen-finance-1",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Network {
    /// The public endpoints of the region.
    #[default]
    Public,
    /// The VPC endpoints of the region.
    Vpc,
}

/// The URL of the region's ECS API, always HTTPS.
pub fn ecs_url(region: &RegionId, network: Network) -> String {
    let host = exception(region, network).map(|(ecs, _)| ecs);
    url(host, "ecs", region, network)
}

/// The URL of the region's Security Token Service, by the same rules.
pub fn sts_url(region: &RegionId, network: Network) -> String {
    let host = exception(region, network).and_then(|(_, sts)| sts);
    url(host, "sts", region, network)
}

/// Whether the region has the same ECS host on both networks.
pub fn has_single_host(region: &RegionId) -> bool {
    exception(region, Network::Vpc).is_some()
}

/// The hosts of a region that differ from the rule of its network.
fn exception(region: &RegionId, network: Network) -> Option<(&'static str, Option<&'static str>)> {
    if network == Network::Vpc && WITH_VPC.contains(&region.as_str()) {
        return None;
    }
    let has = |regions: &str| regions.split_whitespace().any(|name| name == region.as_str());
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

    /// All exceptions, each with its public ECS and STS host, and those in the VPC.
    const TABLE: &str = "
        ap-northeast-2-pop           ecs sts ecs sts
        cn-beijing-finance-1         ecs sts ecs-vpc.cn-beijing-finance-1 sts-vpc.cn-beijing-finance-1
        cn-beijing-finance-pop       ecs sts ecs sts
        cn-beijing-gov-1             ecs sts ecs sts
        cn-beijing-nu16-b01          ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-edge-1                    ecs.cn-qingdao-nebula sts ecs.cn-qingdao-nebula sts
        cn-fujian                    ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-haidian-cm12-c01          ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-hangzhou                  ecs-cn-hangzhou sts.cn-hangzhou ecs-vpc.cn-hangzhou sts-vpc.cn-hangzhou
        cn-hangzhou-bj-b01           ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-hangzhou-finance          ecs sts ecs sts
        cn-hangzhou-internal-prod-1  ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-hangzhou-internal-test-1  ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-hangzhou-internal-test-2  ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-hangzhou-internal-test-3  ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-hangzhou-test-306         ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-hongkong-finance-pop      ecs sts ecs sts
        cn-huhehaote-nebula-1        ecs.cn-qingdao-nebula sts ecs.cn-qingdao-nebula sts
        cn-north-2-gov-1             ecs sts-vpc.cn-north-2-gov-1 ecs sts-vpc.cn-north-2-gov-1
        cn-qingdao-nebula            ecs.cn-qingdao-nebula sts ecs.cn-qingdao-nebula sts
        cn-shanghai-et15-b01         ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-shanghai-et2-b01          ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-shanghai-finance-1        ecs-cn-hangzhou sts.cn-shanghai-finance-1
                                     ecs-vpc.cn-shanghai-finance-1 sts-vpc.cn-shanghai-finance-1
        cn-shanghai-inner            ecs sts ecs sts
        cn-shanghai-internal-test-1  ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-shenzhen-finance-1        ecs-cn-hangzhou sts-vpc.cn-shenzhen-finance-1
                                     ecs-vpc.cn-shenzhen-finance-1 sts-vpc.cn-shenzhen-finance-1
        cn-shenzhen-inner            ecs sts ecs sts
        cn-shenzhen-st4-d01          ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-shenzhen-su18-b01         ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-wuhan                     ecs sts ecs sts
        cn-yushanfang                ecs sts ecs sts
        cn-zhangbei                  ecs sts ecs sts
        cn-zhangbei-na61-b01         ecs-cn-hangzhou sts ecs-cn-hangzhou sts
        cn-zhangjiakou-na62-a01      ecs.cn-zhangjiakou sts ecs.cn-zhangjiakou sts
        cn-zhengzhou-nebula-1        ecs.cn-qingdao-nebula sts ecs.cn-qingdao-nebula sts
        eu-west-1-oxs                ecs.cn-shenzhen-cloudstone sts ecs.cn-shenzhen-cloudstone sts
        rus-west-1-pop               ecs sts ecs sts
        cn-beijing                   ecs.cn-beijing sts.cn-beijing ecs-vpc.cn-beijing sts-vpc.cn-beijing
        eu-central-1                 ecs.eu-central-1 sts.eu-central-1 ecs-vpc.eu-central-1 sts-vpc.eu-central-1
    ";

    #[test]
    fn every_region_has_its_hosts_on_both_networks() {
        let words: Vec<_> = TABLE.split_whitespace().collect();
        for row in words.chunks(5) {
            let region = row[0].parse().unwrap();
            let urls =
                [Network::Public, Network::Vpc].map(|network| [ecs_url(&region, network), sts_url(&region, network)]);
            let expected = [1, 2, 3, 4].map(|at| format!("https://{}.aliyuncs.com", row[at]));
            assert_eq!(urls.as_flattened(), expected, "{region}");
            assert_eq!(has_single_host(&region), row[1] == row[3], "{region}");
        }
        let regions = words.chunks(5).map(|row| row[0]);
        let listed = EXCEPTIONS.iter().flat_map(|(.., names)| names.split_whitespace());
        assert!(listed.clone().all(|name| regions.clone().any(|region| region == name)));
        assert_eq!(regions.count(), listed.count() + 2);
    }

    #[test]
    fn every_region_is_listed_once() {
        let names = EXCEPTIONS.iter().flat_map(|(.., names)| names.split_whitespace());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!((names.len(), all), (37, 37));
    }
}
