import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { McpClient } from '../harness/mcp.ts'
import type { Sample } from '../harness/prometheus.ts'
import { scrape } from '../harness/prometheus.ts'
import type { SignalboxServer } from '../harness/signalbox-server.ts'
import { startSignalbox } from '../harness/signalbox-server.ts'
import { quantile } from '../bench/statistics.ts'

export interface SoakOptions {
  readonly seconds: number
  /**
   * The duration of the same load before the measurement, until V8 has compiled the hot code. Its delays and latencies
   * do not count; everything else does.
   */
  readonly warmUpSeconds: number
  /** Concurrent long polls. */
  readonly polls: number
  readonly senders: number
  /** The number of queues that polls and senders share. */
  readonly queues: number
  /** Sends a second of all senders together; 0 sends after each acknowledgement. */
  readonly rate: number
  /** The allowed delay of the server's event loop, p99, in milliseconds. */
  readonly delayBudgetMs: number
  /** The core for the server; `undefined` leaves the choice to the scheduler. */
  readonly core: number | undefined
  readonly log: (line: string) => void
}

export interface SoakReport {
  readonly sent: number
  readonly received: number
  readonly lost: number
  readonly doubled: number
  readonly unknown: number
  readonly errors: readonly string[]
  /** After the warm-up: the times from the socket write of a send to the receipt of its message. */
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number }
  readonly loopDelayMs: { readonly p50: number; readonly p99: number; readonly max: number }
  readonly exitCode: number | null
  readonly seconds: number
  readonly withinBudget: boolean
}

/** The messages in transit, by body; shared by all clients, which are in this process. */
class Traffic {
  readonly #onWay = new Map<string, number>()
  readonly #received = new Set<number>()
  readonly latencies: number[] = []
  readonly errors: string[] = []
  #next = 1
  doubled = 0
  unknown = 0
  ended = false

  begin(): string {
    const id = this.#next++
    const body = `soak-${id}`
    this.#onWay.set(body, performance.now())
    return body
  }

  receive(body: string): void {
    const number = Number(body.replace('soak-', ''))
    const at = this.#onWay.get(body)
    if (at === undefined) {
      if (this.#received.has(number)) this.doubled++
      else this.unknown++
      return
    }
    this.#onWay.delete(body)
    this.#received.add(number)
    this.latencies.push(performance.now() - at)
  }

  get sent(): number {
    return this.#next - 1
  }

  get received(): number {
    return this.#received.size
  }

  get onWay(): number {
    return this.#onWay.size
  }
}

async function poll(http: string, channel: string, traffic: Traffic, stop: Promise<undefined>): Promise<void> {
  const client = await McpClient.open(http)
  for (;;) {
    const call = client.call('queue_receive', { channel, max_messages: 10, wait_timeout_seconds: 60 })
    const result = await Promise.race([call, stop])
    if (result === undefined) {
      // The client disconnects in the middle of its long poll, which must not be an error.
      call.catch(() => undefined)
      break
    }
    for (const { body } of JSON.parse(result.text) as readonly { readonly body: string }[]) traffic.receive(body)
  }
  client.close()
}

async function send(http: string, channel: string, traffic: Traffic, intervalMs: number): Promise<void> {
  const client = await McpClient.open(http)
  let due = performance.now() + Math.random() * intervalMs
  while (!traffic.ended) {
    if (intervalMs > 0) {
      const wait = due - performance.now()
      due += intervalMs
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    }
    await client.call('queue_send', { channel, body: traffic.begin() })
  }
  client.close()
}

function loopDelay(samples: readonly Sample[], percentile: string): number {
  const found = samples.find(
    ({ name, labels }) => name === 'broker_event_loop_lag_seconds' && labels === `percentile="${percentile}"`,
  )
  if (found === undefined) throw new Error('the server has no metric broker_event_loop_lag_seconds')
  return found.value * 1000
}

async function drive(server: SignalboxServer, options: SoakOptions): Promise<Omit<SoakReport, 'exitCode'>> {
  const traffic = new Traffic()
  const stop = Promise.withResolvers<undefined>()
  const channel = (i: number) => `soak.${i % options.queues}`
  const failed = (who: string) => (error: unknown) => void traffic.errors.push(`${who}: ${String(error)}`)
  const polls = Array.from({ length: options.polls }, (_, i) =>
    poll(server.http, channel(i), traffic, stop.promise).catch(failed('poll')),
  )
  const begin = performance.now()
  const intervalMs = options.rate > 0 ? (options.senders / options.rate) * 1000 : 0
  const senders = Array.from({ length: options.senders }, (_, i) =>
    send(server.http, channel(i), traffic, intervalMs).catch(failed('sender')),
  )
  await new Promise((resolve) => setTimeout(resolve, options.warmUpSeconds * 1000))
  // The quantiles of a scrape cover the time since the previous scrape, so this one starts the measurement.
  await scrape(server.api)
  traffic.latencies.length = 0
  const ticker = setInterval(() => options.log(`${traffic.sent} sent, ${traffic.received} received`), 10_000)
  await new Promise((resolve) => setTimeout(resolve, options.seconds * 1000))
  traffic.ended = true
  await Promise.all(senders)
  clearInterval(ticker)
  const samples = await scrape(server.api)
  const seconds = (performance.now() - begin) / 1000
  // The last acknowledged messages are still in transit to a poll.
  for (let i = 0; traffic.onWay > 0 && i < 2_000; i++) await new Promise((resolve) => setTimeout(resolve, 10))
  stop.resolve(undefined)
  await Promise.all(polls)
  const p99 = loopDelay(samples, '99')
  const { latencies } = traffic
  const latency = (p: number) => (latencies.length === 0 ? Number.NaN : quantile(latencies, p))
  return {
    sent: traffic.sent,
    received: traffic.received,
    lost: traffic.onWay,
    doubled: traffic.doubled,
    unknown: traffic.unknown,
    errors: traffic.errors,
    latencyMs: { p50: latency(0.5), p99: latency(0.99), max: latency(1) },
    loopDelayMs: { p50: loopDelay(samples, '50'), p99, max: loopDelay(samples, '100') },
    seconds,
    withinBudget: p99 <= options.delayBudgetMs,
  }
}

/**
 * Runs many long polls and senders at once over HTTP and checks for lost and duplicated messages, errors, and a slow
 * event loop.
 */
export async function soak(options: SoakOptions): Promise<SoakReport> {
  await using folder = await TemporaryFolder.create('soak')
  await using server = await startSignalbox({ storePath: folder.join('store'), core: options.core })
  const figures = await drive(server, options)
  return { ...figures, exitCode: await server.process.stop() }
}

/** Returns the reasons why a soak failed; empty if it succeeded. */
export function soakProblems(report: SoakReport): string[] {
  const problems: string[] = []
  if (report.received === 0) problems.push('no message was received')
  if (report.lost > 0) problems.push(`${report.lost} messages lost`)
  if (report.doubled > 0) problems.push(`${report.doubled} messages duplicated`)
  if (report.unknown > 0) problems.push(`${report.unknown} messages that were never sent`)
  if (report.errors.length > 0)
    problems.push(`${report.errors.length} errors: ${report.errors.slice(0, 3).join(' · ')}`)
  if (report.exitCode !== 0) problems.push(`the server ended with exit code ${report.exitCode}`)
  if (!report.withinBudget) problems.push('the event-loop delay exceeded its budget')
  return problems
}
