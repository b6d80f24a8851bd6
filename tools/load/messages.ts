import { commandLine, conclude, number, progress } from '@signalbox/testkit/command-line'
import type { Spread } from '@signalbox/testkit/figures'
import { spreadOf, spreadText } from '@signalbox/testkit/figures'
import { McpClient } from '@signalbox/testkit/mcp-client'
import { pinLoad } from '@signalbox/testkit/process-cpu'
import type { Sample } from '@signalbox/testkit/prometheus'
import { scrape } from '@signalbox/testkit/prometheus'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import type { SendKind } from './ledgers.ts'
import { QueueLedger, Violations } from './ledgers.ts'

/** Sends and receives with many clients at once. */
export async function main(args: string[]): Promise<void> {
  const { values } = commandLine(
    {
      usage: 'npm run soak -- [options]',
      about: `Long polls and senders at once against the real server, over HTTP. Exits with 1 on an error, a lost or duplicated message,
or an event-loop delay over the budget.`,
    },
    {
      seconds: number('N', 'duration', 60),
      'warm-up': number('N', 'seconds of the same load before that, in which delays are not counted', 10),
      polls: number('N', 'concurrent long polls', 200),
      senders: number('N', 'concurrent senders', 64),
      queues: number('N', 'queues they share', 20),
      rate: number('N', 'sends a second of all senders together; 0 sends after each acknowledgement', 0),
      budget: number('MS', 'event-loop delay p99', 5),
    },
    args,
  )
  const { 'warm-up': warmUpSeconds, budget: delayBudgetMs, ...sizes } = values
  const report = await soak({ ...sizes, warmUpSeconds, delayBudgetMs, core: pinLoad()?.measured, log: progress })
  process.stdout.write(
    [
      `${values.polls} long polls, ${values.senders} senders, ${report.seconds.toFixed(1)} s`,
      `sent ${report.sent} (${Math.round(report.sent / report.seconds)}/s), received ${report.received}, lost ${report.lost}, doubled ${report.doubled}, errors ${report.errors.length}`,
      `send to receive: ${spreadText(report.latencyMs)}`,
      `event-loop delay of the server: ${spreadText(report.loopDelayMs)} (budget p99 ${delayBudgetMs} ms)`,
      '',
    ].join('\n'),
  )
  conclude(soakProblems(report))
}

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
  readonly latencyMs: Spread
  readonly loopDelayMs: Spread
  readonly exitCode: number | null
  readonly seconds: number
  readonly withinBudget: boolean
}

/** A message without options. */
const PLAIN: SendKind = { delayMs: 0, expirationMs: 0, retried: false }

/** The messages of all clients, which are in this process. */
class Traffic {
  readonly violations = new Violations()
  readonly ledger = new QueueLedger(this.violations, 0)
  readonly latencies: number[] = []
  readonly errors: string[] = []
  ended = false

  receive(body: string): void {
    const now = performance.now()
    const sent = this.ledger.receive(body, 1, now, now)
    if (sent !== undefined) this.latencies.push(now - sent.startedAt)
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
  const { ledger } = traffic
  const client = await McpClient.open(http)
  let due = performance.now() + Math.random() * intervalMs
  while (!traffic.ended) {
    if (intervalMs > 0) {
      const wait = due - performance.now()
      due += intervalMs
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    }
    const sent = ledger.begin(channel, PLAIN, performance.now())
    await client.call('queue_send', { channel, body: ledger.body(sent) })
    ledger.acknowledge(sent, performance.now(), false)
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
  const { ledger, violations } = traffic
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
  const ticker = setInterval(() => options.log(`${ledger.acknowledged} sent, ${ledger.received} received`), 10_000)
  await new Promise((resolve) => setTimeout(resolve, options.seconds * 1000))
  traffic.ended = true
  await Promise.all(senders)
  clearInterval(ticker)
  const samples = await scrape(server.api)
  const seconds = (performance.now() - begin) / 1000
  // The last acknowledged messages are still in transit to a poll.
  for (let i = 0; ledger.waiting > 0 && i < 2_000; i++) await new Promise((resolve) => setTimeout(resolve, 10))
  stop.resolve(undefined)
  await Promise.all(polls)
  const p99 = loopDelay(samples, '99')
  ledger.finish()
  const { latencies, errors } = traffic
  return {
    sent: ledger.acknowledged,
    received: ledger.received,
    lost: violations.count('lost'),
    doubled: violations.count('doubled'),
    unknown: violations.count('unknown'),
    errors,
    latencyMs: spreadOf(latencies),
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
