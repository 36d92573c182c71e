//! Lines to the outside: made when the first request needs one, and what the tools for the outside are given.

use std::sync::{Arc, OnceLock};

use animaworks_core::{
    Clock, DataDir,
    config::Env,
    seams::{Body, HttpTransport, TransportError},
};
use animaworks_exec::transport::{Reach, Transport, TransportOptions};
use animaworks_tools::Outside;
use async_trait::async_trait;
use bytes::Bytes;

/// A transport that is made when it is first needed: TLS costs megabytes that most Animas never use.
#[derive(Debug)]
pub(super) struct OnDemand {
    options: TransportOptions,
    transport: OnceLock<Transport>,
    clock: Arc<dyn Clock>,
}

impl OnDemand {
    pub(super) fn new(options: TransportOptions, clock: Arc<dyn Clock>) -> Self {
        Self { options, transport: OnceLock::new(), clock }
    }
}

#[async_trait]
impl HttpTransport for OnDemand {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let transport = match self.transport.get() {
            Some(transport) => transport,
            None => {
                let made = Transport::open(self.options.clone(), self.clock.clone())?;
                self.transport.get_or_init(|| made)
            }
        };
        transport.send(request).await
    }
}

/// What the tools for the outside are given.
pub(super) fn outside(env: &Env, data: &DataDir, clock: &Arc<dyn Clock>) -> Outside {
    let public = TransportOptions { reach: Reach::Public, ..TransportOptions::default() };
    Outside {
        public: Arc::new(OnDemand::new(public, clock.clone())),
        services: Arc::new(OnDemand::new(TransportOptions::default(), clock.clone())),
        data: data.clone(),
        env: env.clone(),
        clock: clock.clone(),
    }
}
