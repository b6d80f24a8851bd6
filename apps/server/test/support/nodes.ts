import { NatsServer, RequestFront } from '@signalbox/engine-nats/testing'
import { onTestFinished } from 'vitest'

import type { PartialConfig } from '../../src/config/load.ts'
import type { RunningServer } from '../../src/server.ts'
import type { Environment } from '../../src/telemetry/telemetry.ts'
import { serve } from './server.ts'

/** For what takes as long as nodes take to tell each other. */
export const PATIENT = { timeout: 20_000 }

/** A nats-server of the test's own. */
export async function startNats(): Promise<NatsServer> {
  const nats = await NatsServer.start()
  onTestFinished(() => nats[Symbol.asyncDispose]())
  return nats
}

/** One more node in this process. */
export function serveNode(nats: NatsServer, partial: PartialConfig = {}, env?: Environment): Promise<RunningServer> {
  return serve({ ...partial, engine: 'nats', nats: { servers: [nats.url] } }, env)
}

/** Nodes in this process that share a nats-server. */
export async function serveNodes(count: number, partial: PartialConfig = {}): Promise<readonly RunningServer[]> {
  const nats = await startNats()
  return Promise.all(Array.from({ length: count }, () => serveNode(nats, partial)))
}

/** An address at which each request reaches another node than the one before. */
export async function startFront(nodes: readonly RunningServer[]): Promise<string> {
  const front = await RequestFront.start(nodes.map(({ http }) => http.url))
  onTestFinished(() => front[Symbol.asyncDispose]())
  return front.url
}

/** The value of a series on a node's metrics page; 0 where it is not there. */
export async function metric(api: string, series: string): Promise<number> {
  const page = await (await fetch(`${api}/metrics`)).text()
  const line = page.split('\n').find((each) => each.startsWith(`${series} `))
  return line === undefined ? 0 : Number(line.slice(series.length + 1))
}
