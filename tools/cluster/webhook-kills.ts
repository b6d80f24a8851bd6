import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

import { median } from '@signalbox/testkit/figures'
import { askJson, serveHttp } from '@signalbox/testkit/loopback'
import { scrape } from '@signalbox/testkit/prometheus'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { eventually } from '@signalbox/testkit/until'

import { LocalCluster } from './local-cluster.ts'

const CHANNEL = 'kills.numbers'
const SUBSCRIPTIONS = 4

/** The pause between two events, in ms. */
const PUBLISH_MS = 20

/** The time for which a killed node is down, in ms. */
const DOWN_MS = 2_000

/** The longest time until another node delivers, in ms. */
const TAKE_OVER_MS = 30_000

/** The time in which all events must have arrived after the last kill, in ms. */
const CATCH_UP_MS = 60_000

interface WebhookKillsOptions {
  readonly kills: number
  /** The time between two kills, in ms. */
  readonly everyMs: number
  readonly logs?: string | undefined
  readonly natsServer?: string | undefined
  readonly log: (line: string) => void
}

interface WebhookKillsReport {
  readonly kills: number
  /** Acknowledged events; each is delivered to every subscription. */
  readonly published: number
  readonly subscriptions: number
  /** The deliveries that never arrived. */
  readonly lost: number
  /** Accepted deliveries that were accepted before. */
  readonly repeats: number
  /** Events that arrived before an earlier one of the same subscription. */
  readonly early: number
  /** The most deliveries of one subscription in flight at a time. */
  readonly mostInFlight: number
  /** The time from a kill to the first delivery of another node, for each kill and subscription, in ms. */
  readonly takeOverMs: readonly number[]
}

/**
 * Runs two nodes and ordered webhook subscriptions, and kills the node that serves them again and again, while events
 * are published.
 */
export async function webhookKills(options: WebhookKillsOptions): Promise<WebhookKillsReport> {
  const { kills, everyMs, log } = options
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await TemporaryFolder.create('webhook-kills'))
  const endpoint = new WebhookEndpoint(SUBSCRIPTIONS)
  const { url } = stack.use(await serveHttp((request, response) => endpoint.serve(request, response)))
  const keyFile = folder.join('webhooks.key')
  await writeFile(keyFile, randomBytes(32), { mode: 0o600 })
  const env = { WEBHOOKS_ENABLE: 'true', WEBHOOKS_KEY_FILE: keyFile, WEBHOOKS_ALLOW: '127.0.0.1' }
  const cluster = stack.use(
    await LocalCluster.start({ nodes: 2, env, logs: options.logs, natsServer: options.natsServer }),
  )
  await Promise.all(endpoint.subscriptions.map((_, i) => subscribe(cluster, `${url}/${i}`)))
  const publisher = new Publisher(() => cluster.front.url)
  await eventually(() => {
    if (endpoint.subscriptions.some(({ lastAt }) => lastAt === 0)) throw new Error('a subscription got no event')
  })
  const takeOverMs: number[] = []
  for (let kill = 1; kill <= kills; kill++) {
    const until = performance.now() + everyMs
    const victim = await servingNode(cluster)
    const killedAt = performance.now()
    await cluster.killNode(victim)
    const times = endpoint.subscriptions.map(async (deliveries) => {
      // A delivery that the dead node sent may still be accepted.
      const others = killedAt + 500
      await eventually(() => {
        if (deliveries.lastAt < others) throw new Error(`no delivery ${TAKE_OVER_MS / 1000} s after a kill`)
      }, TAKE_OVER_MS)
      return deliveries.lastAt - killedAt
    })
    const [measured] = await Promise.all([Promise.all(times), pause(DOWN_MS).then(() => cluster.startNode(victim))])
    takeOverMs.push(...measured)
    log(`kill ${kill}: node ${victim}; taken over after ${measured.map((ms) => (ms / 1000).toFixed(1)).join(', ')} s`)
    await pause(Math.max(0, until - performance.now()))
  }
  const published = await publisher.stop()
  const missing = () => endpoint.subscriptions.flatMap((deliveries) => deliveries.missing(published))
  await eventually(() => {
    if (missing().length > 0) throw new Error('events are missing')
  }, CATCH_UP_MS).catch(() => {})
  return {
    kills,
    published,
    subscriptions: SUBSCRIPTIONS,
    lost: missing().length,
    repeats: endpoint.subscriptions.reduce((sum, { repeats }) => sum + repeats, 0),
    early: endpoint.subscriptions.reduce((sum, { early }) => sum + early.length, 0),
    mostInFlight: Math.max(...endpoint.subscriptions.map(({ mostInFlight }) => mostInFlight)),
    takeOverMs,
  }
}

/** Returns the promises that a run has broken. */
export function webhookFaults({
  kills,
  published,
  lost,
  early,
  mostInFlight,
  takeOverMs,
}: WebhookKillsReport): string[] {
  const faults: string[] = []
  if (published === 0) faults.push('no event was published')
  if (lost > 0) faults.push(`${lost} deliveries are missing`)
  if (early > 0) faults.push(`${early} deliveries overtook an earlier event`)
  if (mostInFlight > 1) faults.push(`${mostInFlight} deliveries of an ordered subscription were in flight at once`)
  if (takeOverMs.length < kills) faults.push('a kill has no take-over')
  return faults
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

export function webhookSummary(report: WebhookKillsReport): string {
  const { kills, published, subscriptions, lost, repeats, early, mostInFlight, takeOverMs } = report
  return [
    `${kills} kills of the serving node, ${published} events to ${subscriptions} ordered subscriptions`,
    `lost ${lost}, repeated ${repeats}, out of order ${early}, most in flight ${mostInFlight}`,
    `taken over after ${seconds(median(takeOverMs))} (median), ${seconds(Math.max(...takeOverMs))} (longest)`,
    '',
  ].join('\n')
}

async function subscribe(cluster: LocalCluster, sink: string): Promise<void> {
  await askJson(`${cluster.nodes[0]?.http}/ce/subscriptions`, {
    body: { sink, config: { channel: CHANNEL, start: 'first' } },
  })
}

/** Returns the node that delivers. */
async function servingNode(cluster: LocalCluster): Promise<number> {
  const before = await deliveredBy(cluster)
  for (;;) {
    await pause(200)
    const after = await deliveredBy(cluster)
    const serving = after.findIndex((count, i) => count > (before[i] ?? 0))
    if (serving >= 0) return serving
  }
}

function deliveredBy(cluster: LocalCluster): Promise<number[]> {
  return Promise.all(
    cluster.nodes.map(async (node) => {
      if (node === undefined) return 0
      const sample = (await scrape(node.api)).find(
        ({ name, labels }) =>
          name === 'broker_webhook_attempt_duration_seconds_count' && labels.includes('outcome="delivered"'),
      )
      return sample?.value ?? 0
    }),
  )
}

/** Publishes events with the ids 0, 1, 2 …, each again until it is acknowledged. */
class Publisher {
  readonly #stopped = new AbortController()
  readonly #done: Promise<number>

  constructor(base: () => string) {
    this.#done = this.#run(base)
  }

  async #run(base: () => string): Promise<number> {
    let next = 0
    while (!this.#stopped.signal.aborted) {
      if (await publish(base(), next)) next++
      await pause(PUBLISH_MS)
    }
    return next
  }

  /** Resolves with the number of acknowledged events. */
  stop(): Promise<number> {
    this.#stopped.abort()
    return this.#done
  }
}

async function publish(base: string, n: number): Promise<boolean> {
  try {
    await askJson(`${base}/ce/send/event-store?channel=${CHANNEL}`, {
      headers: { 'content-type': 'application/cloudevents+json' },
      body: { specversion: '1.0', id: String(n), source: '/kills', type: 'number', data: n },
      timeoutMs: 5_000,
    })
    return true
  } catch {
    return false
  }
}

/** The time to answer a delivery, in ms: long enough that a second one in flight would be seen. */
const ANSWER_MS = 10

/** The deliveries of one ordered subscription, whose events have the ids 0, 1, 2 … */
class OrderedDeliveries {
  readonly #accepted = new Set<number>()
  #inFlight = 0
  /** The most deliveries in flight at a time. */
  mostInFlight = 0
  /** Accepted events that were accepted before. */
  repeats = 0
  /** Events that arrived before an earlier one was accepted. */
  readonly early: number[] = []
  /** The time of the last accepted delivery, by `performance.now()`. */
  lastAt = 0

  begin(): void {
    this.mostInFlight = Math.max(this.mostInFlight, ++this.#inFlight)
  }

  end(): void {
    this.#inFlight--
  }

  accept(n: number): void {
    this.lastAt = performance.now()
    if (this.#accepted.has(n)) this.repeats++
    else if (n > 0 && !this.#accepted.has(n - 1)) this.early.push(n)
    this.#accepted.add(n)
  }

  /** Returns the events below `count` that were not accepted. */
  missing(count: number): readonly number[] {
    return Array.from({ length: count }, (_, n) => n).filter((n) => !this.#accepted.has(n))
  }
}

/** An endpoint on loopback with one path, `/0`, `/1` …, for each subscription. It agrees to webhooks. */
class WebhookEndpoint {
  readonly subscriptions: readonly OrderedDeliveries[]

  constructor(count: number) {
    this.subscriptions = Array.from({ length: count }, () => new OrderedDeliveries())
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    const deliveries = this.subscriptions[Number(request.url?.slice(1))]
    if (deliveries === undefined || request.method !== 'POST') {
      response.writeHead(200, { 'WebHook-Allowed-Origin': '*' }).end()
      return
    }
    deliveries.begin()
    // Also emitted if the node dies.
    response.once('close', () => deliveries.end())
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (body += chunk))
    request.once('end', () => {
      setTimeout(() => {
        if (response.destroyed) return
        const { id } = JSON.parse(body) as { readonly id: string }
        deliveries.accept(Number(id))
        response.writeHead(204).end()
      }, ANSWER_MS)
    })
  }
}
