//! Where a region's ECS API answers.

use crate::model::RegionId;

/// Regions whose host does not follow the rule, as the vendor's SDKs carry them.
const CENTRAL: &str = "ecs.aliyuncs.com";
const HANGZHOU: &str = "ecs-cn-hangzhou.aliyuncs.com";

/// Which network the API is reached over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Network {
    /// The internet.
    #[default]
    Public,
    /// The region's own network, from within it.
    Vpc,
}

/// The URL of the region's API, always HTTPS. The exceptions come before the network, as in the
/// vendor's SDKs: those regions have the one host.
#[must_use]
pub fn of_region(region: &RegionId, network: Network) -> String {
    let region = region.as_str();
    let host = match region {
        "cn-hangzhou" | "cn-shanghai-finance-1" | "cn-shenzhen-finance-1" => HANGZHOU.to_owned(),
        "cn-hangzhou-finance"
        | "cn-north-2-gov-1"
        | "cn-beijing-gov-1"
        | "cn-wuhan"
        | "cn-zhangbei" => CENTRAL.to_owned(),
        "cn-zhangjiakou-na62-a01" => "ecs.cn-zhangjiakou.aliyuncs.com".to_owned(),
        _ => match network {
            Network::Public => format!("ecs.{region}.aliyuncs.com"),
            Network::Vpc => format!("ecs-vpc.{region}.aliyuncs.com"),
        },
    };
    format!("https://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_has_its_own_host_but_for_the_exceptions() {
        for (region, network, url) in [
            (
                "cn-beijing",
                Network::Public,
                "https://ecs.cn-beijing.aliyuncs.com",
            ),
            (
                "cn-beijing",
                Network::Vpc,
                "https://ecs-vpc.cn-beijing.aliyuncs.com",
            ),
            (
                "cn-hangzhou",
                Network::Vpc,
                "https://ecs-cn-hangzhou.aliyuncs.com",
            ),
            ("cn-wuhan", Network::Public, "https://ecs.aliyuncs.com"),
        ] {
            assert_eq!(of_region(&region.parse().unwrap(), network), url);
        }
    }
}
