import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { quantile } from '@signalbox/testkit/figures'
import { KeepAliveConnection, postBytes } from '@signalbox/testkit/http-connection'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { eventually } from '@signalbox/testkit/until'

const HELP = `npm run soak -- webhooks [options]

Webhook subscriptions to as many events stores, and events at a fixed rate. In every second round one endpoint hangs, one
answers 500 and one is slow. Prints the times from the send of an event to the other endpoints, and the memory of the
server. Exits with 1 if a delivery was lost.

  --subscriptions N  (default 10000)
  --rate N           events a second (default 200)
  --rounds N         rounds without, and with, the bad endpoints (default 2)
  --seconds N        duration of a round (default 20)
`

const print = (line: string) => void process.stdout.write(`${line}\n`)

/** Delivers to many subscriptions while some endpoints fail. */
export async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      subscriptions: { type: 'string', default: '10000' },
      rate: { type: 'string', default: '200' },
      rounds: { type: 'string', default: '2' },
      seconds: { type: 'string', default: '20' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    print(HELP)
    return
  }
  const report = await webhookSoak({
    subscriptions: Number(values.subscriptions),
    rate: Number(values.rate),
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    log: (line) => process.stderr.write(`${line}\n`),
  })
  print(`${report.subscriptions} subscriptions, created in ${report.createdSeconds.toFixed(0)} s`)
  for (const kind of ['without', 'with'] as const) {
    const { p50, p99, max } = report[kind]
    print(`${kind} the bad endpoints: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, max ${max.toFixed(1)} ms`)
  }
  for (const [kind, attempts] of Object.entries(report.attempts))
    print(`the endpoint that ${kind}: ${attempts} requests`)
  print(`${report.published} events, ${report.lost} lost`)
  print(
    `memory of the server: ${report.rssMib.map((mib) => mib.toFixed(0)).join(', ')} MiB (before, subscribed, at the end)`,
  )
  process.exitCode = report.lost === 0 ? 0 : 1
}

/** The subscriptions whose endpoints can fail. */
const BAD = ['hangs', 'answers 500', 'is slow'] as const

/** The time in which the slow endpoint answers, in ms. */
const SLOW_MS = 2_000

/** The number of connections that create subscriptions, and that publish. */
const CLIENTS = 8

/** The time for the deliveries that wait when a round ends, in ms: longer than an attempt and the pauses before the next ones. */
const DRAIN_MS = 60_000

export interface WebhookSoakOptions {
  readonly subscriptions: number
  /** Events a second to subscriptions with good endpoints. */
  readonly rate: number
  /** Rounds without and with the bad endpoints, of `seconds` each. */
  readonly rounds: number
  readonly seconds: number
  readonly core?: number | undefined
  readonly log: (line: string) => void
}

interface Latency {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export interface WebhookSoakReport {
  readonly subscriptions: number
  readonly createdSeconds: number
  /** The times from the send to the endpoint of good subscriptions, in ms: of all rounds without and with the bad ones. */
  readonly without: Latency
  readonly with: Latency
  /** The requests that each bad endpoint got. */
  readonly attempts: Readonly<Record<string, number>>
  readonly published: number
  readonly lost: number
  /** The memory of the server before the subscriptions, with them, and at the end, in MiB. */
  readonly rssMib: readonly [before: number, subscribed: number, end: number]
}

/** The endpoints of all subscriptions: one path each on one server. */
class Endpoints {
  readonly #server = createServer((request, response) => this.#serve(request, response))
  readonly #hanging = new Set<ServerResponse>()
  readonly attempts = BAD.map(() => 0)
  readonly accepted = new Set<number>()
  latencies: number[] = []
  #bad = false

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Lets the bad endpoints fail, or accept everything. */
  setBad(bad: boolean): void {
    this.#bad = bad
    if (bad) return
    for (const response of this.#hanging) response.destroy()
    this.#hanging.clear()
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (body += chunk))
    request.once('end', () => {
      if (request.method === 'POST') this.#deliver(Number(request.url?.slice(1)), body, response)
      else response.writeHead(200, { 'WebHook-Allowed-Origin': '*' }).end()
    })
  }

  #deliver(subscription: number, body: string, response: ServerResponse): void {
    const { data } = JSON.parse(body) as { readonly data: { readonly n: number; readonly at: number } }
    const accept = (): void => {
      this.accepted.add(data.n)
      response.writeHead(204).end()
    }
    const kind = this.#bad ? BAD[subscription] : undefined
    if (kind !== undefined) this.attempts[subscription] = (this.attempts[subscription] ?? 0) + 1
    if (kind === 'hangs') this.#hanging.add(response)
    else if (kind === 'answers 500') response.writeHead(500).end()
    else if (kind === 'is slow') setTimeout(accept, SLOW_MS)
    else {
      if (subscription >= BAD.length) this.latencies.push(performance.now() - data.at)
      accept()
    }
  }

  /** Resolves when each bad endpoint got a request, or after a time. */
  async allAttempted(): Promise<void> {
    await eventually(() => {
      if (this.attempts.includes(0)) throw new Error('an endpoint got no request')
    }).catch(() => {})
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** Measures the deliveries of many subscriptions, while a few endpoints fail and while none does. */
export async function webhookSoak(options: WebhookSoakOptions): Promise<WebhookSoakReport> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await TemporaryFolder.create('webhooks'))
  const endpoints = new Endpoints()
  const url = await endpoints.open()
  stack.defer(() => endpoints.close())
  const env = {
    WEBHOOKS_ENABLE: 'true',
    WEBHOOKS_KEY_FILE: folder.join('webhooks.key'),
    WEBHOOKS_ALLOW: '127.0.0.1',
    WEBHOOKS_MAX_PER_OWNER: '0',
    // A caller without authentication may use half of them.
    MAX_CHANNELS: String(2 * options.subscriptions + 1_000),
    NODE_OPTIONS: '--expose-gc',
  }
  const server = stack.use(await startSignalbox({ storePath: folder.join('store'), core: options.core, env }))
  return await measure(server, endpoints, url, options)
}

async function measure(
  server: SignalboxServer,
  endpoints: Endpoints,
  url: string,
  { subscriptions, rate, rounds, seconds, log }: WebhookSoakOptions,
): Promise<WebhookSoakReport> {
  const mib = async (): Promise<number> => (await server.process.rssBytes()) / 1024 ** 2
  const before = await mib()
  const begin = performance.now()
  await createAll(server.http, url, subscriptions)
  const createdSeconds = (performance.now() - begin) / 1000
  const subscribed = await mib()
  log(`${subscriptions} subscriptions after ${createdSeconds.toFixed(0)} s`)
  let published = 0
  const all = { without: [] as number[], with: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    for (const kind of ['without', 'with'] as const) {
      endpoints.setBad(kind === 'with')
      endpoints.latencies = []
      published = await publishFor({ server, published, rate, seconds, subscriptions, bad: kind === 'with' })
      all[kind].push(...endpoints.latencies)
      if (kind === 'with') await endpoints.allAttempted()
      endpoints.setBad(false)
      await eventually(() => {
        if (endpoints.accepted.size < published) throw new Error('deliveries wait')
      }, DRAIN_MS).catch(() => {})
      log(`round ${round + 1}, ${kind} the bad endpoints: p99 ${quantile(endpoints.latencies, 0.99).toFixed(1)} ms`)
    }
  }
  return {
    subscriptions,
    createdSeconds,
    without: latencyOf(all.without),
    with: latencyOf(all.with),
    attempts: Object.fromEntries(BAD.map((kind, i) => [kind, endpoints.attempts[i] ?? 0])),
    published,
    lost: published - endpoints.accepted.size,
    rssMib: [before, subscribed, await mib()],
  }
}

function latencyOf(values: readonly number[]): Latency {
  return { p50: quantile(values, 0.5), p99: quantile(values, 0.99), max: values.reduce((a, b) => Math.max(a, b), 0) }
}

async function createAll(http: string, url: string, count: number): Promise<void> {
  let next = 0
  await eachClient(http, async (connection) => {
    while (next < count) {
      const i = next++
      const body = JSON.stringify({ sink: `${url}/${i}`, config: { channel: `soak.${i}`, start: 'first' } })
      const { status } = await connection.request(postBytes(`${http}/ce/subscriptions`, body))
      if (status !== 201) throw new Error(`subscription ${i} was answered with ${status}`)
    }
  })
}

interface Publishing {
  readonly server: SignalboxServer
  /** The events that were published before. */
  readonly published: number
  readonly rate: number
  readonly seconds: number
  readonly subscriptions: number
  /** True to publish a twentieth of the events to each bad endpoint. */
  readonly bad: boolean
}

/** Publishes at a fixed rate. Resolves with the number of events that were published in all. */
async function publishFor({ server, published, rate, seconds, subscriptions, bad }: Publishing): Promise<number> {
  const begin = performance.now()
  const last = published + rate * seconds
  let n = published
  await eachClient(server.http, async (connection) => {
    while (n < last) {
      const own = n++
      const wait = begin + ((own - published) * 1000) / rate - performance.now()
      if (wait > 0) await pause(wait)
      const spread = BAD.length + ((own * 7_919) % (subscriptions - BAD.length))
      const subscription = bad && own % 20 < BAD.length ? own % 20 : spread
      const event = { specversion: '1.0', id: String(own), source: '/soak', type: 'soak' }
      const json = JSON.stringify({ ...event, data: { n: own, at: performance.now() } })
      const target = `${server.http}/ce/send/event-store?channel=soak.${subscription}`
      const { status } = await connection.request(
        postBytes(target, json, { 'Content-Type': 'application/cloudevents+json' }),
      )
      if (status >= 300) throw new Error(`an event was answered with ${status}`)
    }
  })
  return last
}

async function eachClient(http: string, work: (connection: KeepAliveConnection) => Promise<void>): Promise<void> {
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const connection = await KeepAliveConnection.open(http)
      await work(connection)
      connection.close()
    }),
  )
}
