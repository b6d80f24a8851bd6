import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

import { commandLine, number, print, progress } from '@signalbox/testkit/command-line'
import type { Spread } from '@signalbox/testkit/figures'
import { quantile, spreadOf, spreadText } from '@signalbox/testkit/figures'
import { KeepAliveConnection, postBytes } from '@signalbox/testkit/http-connection'
import { serveHttp } from '@signalbox/testkit/loopback'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { eventually } from '@signalbox/testkit/until'

/** Delivers to many subscriptions while some endpoints fail. */
export async function main(args: string[]): Promise<void> {
  const { values } = commandLine(
    {
      usage: 'npm run soak -- webhooks [options]',
      about: `Webhook subscriptions to as many events stores, and events at a fixed rate. In every second round one endpoint hangs, one
answers 500 and one is slow. Prints the times from the send of an event to the other endpoints, and the memory of the
server. Exits with 1 if a delivery was lost.`,
    },
    {
      subscriptions: number('N', 'subscriptions', 10_000),
      rate: number('N', 'events a second', 200),
      rounds: number('N', 'rounds without, and with, the bad endpoints', 2),
      seconds: number('N', 'duration of a round', 20),
    },
    args,
  )
  const report = await webhookSoak({ ...values, log: progress })
  print(`${report.subscriptions} subscriptions, created in ${report.createdSeconds.toFixed(0)} s`)
  for (const kind of ['without', 'with'] as const) {
    print(`${kind} the bad endpoints: ${spreadText(report[kind], 1)}`)
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

export interface WebhookSoakReport {
  readonly subscriptions: number
  readonly createdSeconds: number
  /** The times from the send to the endpoint of good subscriptions, in ms: of all rounds without and with the bad ones. */
  readonly without: Spread
  readonly with: Spread
  /** The requests that each bad endpoint got. */
  readonly attempts: Readonly<Record<string, number>>
  readonly published: number
  readonly lost: number
  /** The memory of the server before the subscriptions, with them, and at the end, in MiB. */
  readonly rssMib: readonly [before: number, subscribed: number, end: number]
}

/** The endpoints of all subscriptions: one path each on one server. */
class Endpoints {
  readonly #hanging = new Set<ServerResponse>()
  readonly attempts = BAD.map(() => 0)
  readonly accepted = new Set<number>()
  latencies: number[] = []
  #bad = false

  /** Lets the bad endpoints fail, or accept everything. */
  setBad(bad: boolean): void {
    this.#bad = bad
    if (bad) return
    for (const response of this.#hanging) response.destroy()
    this.#hanging.clear()
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
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
}

/** Measures the deliveries of many subscriptions, while a few endpoints fail and while none does. */
export async function webhookSoak(options: WebhookSoakOptions): Promise<WebhookSoakReport> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await TemporaryFolder.create('webhooks'))
  const endpoints = new Endpoints()
  const { url } = stack.use(await serveHttp((request, response) => endpoints.serve(request, response)))
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
    without: spreadOf(all.without),
    with: spreadOf(all.with),
    attempts: Object.fromEntries(BAD.map((kind, i) => [kind, endpoints.attempts[i] ?? 0])),
    published,
    lost: published - endpoints.accepted.size,
    rssMib: [before, subscribed, await mib()],
  }
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
