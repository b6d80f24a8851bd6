export { NatsCluster } from './nats-cluster.ts'
export { NATS_SERVER, NatsServer, natsServerVersion } from './nats-server.ts'
export type { NatsServerOptions } from './nats-server.ts'
export { RequestFront } from './request-front.ts'
