import { quantile, table } from '@signalbox/testkit/figures'

import type { Ledger } from '../load/ledgers.ts'
import { BREACHES } from '../load/ledgers.ts'
import type { AgentStreamLoad } from '../load/mixed/agent-streams.ts'
import type { Recovery } from './recovery-watch.ts'

/** The result of one disaster. */
export interface Outcome {
  /** The kind of the disaster, such as `kill node`. */
  readonly kind: string
  readonly recoveries: ReadonlyMap<string, Recovery>
  /**
   * From the end until the struck node (after a nats-server: every node) served every kind of load directly, in
   * milliseconds.
   */
  readonly itselfMs: number | undefined
  /** From the end until all nats-servers held the same data again, in milliseconds; `undefined` if none was struck. */
  readonly inStepMs: number | undefined
  /** The recoveries that took too long. */
  readonly problems: readonly string[]
}

export interface Round extends Outcome {
  /** The number of messages that were delivered again in this round. */
  readonly again: number
}

export interface ChaosReport {
  readonly ledgers: readonly Ledger[]
  readonly rounds: readonly Round[]
  readonly streamEnds: Readonly<AgentStreamLoad['ends']>
  readonly seconds: number
  /** The recoveries that took too long, and the checks that could not run. */
  readonly problems: readonly string[]
}

const seconds = (ms: number | undefined): string => (ms === undefined ? '–' : (ms / 1000).toFixed(1))

/** The effects of one disaster on each kind of load. */
export function roundLines({ recoveries, itselfMs, inStepMs, again }: Round): readonly string[] {
  const each = [...recoveries].map(
    ([kind, { outageMs, everyoneMs }]) => `${kind} ${seconds(outageMs)}/${seconds(everyoneMs)}`,
  )
  return [
    `  outage/all clients, s: ${each.join(', ')}; at itself ${seconds(itselfMs)}; servers in step ${seconds(inStepMs)}; messages again ${again}`,
  ]
}

/** Every broken promise, as text. */
export function breaches({ ledgers, problems }: ChaosReport): readonly string[] {
  return [...problems, ...ledgers.flatMap(({ examples }) => examples)]
}

/** Returns the tables at the end of a run. */
export function summary(report: ChaosReport): string {
  const { streamEnds: ends, rounds, ledgers } = report
  const broken = breaches(report)
  return [
    `${rounds.length} disasters in ${Math.round(report.seconds)} s`,
    '',
    'Recovery by kind of disaster, in seconds (median / p99 / max).',
    'outage: no client served, from the start of the disaster; all clients: from its end until every client of every kind was served;',
    'itself: from its end until the struck node (after a nats-server: every node) served every kind directly;',
    'in step: from its end until all nats-servers held the same data again.',
    ...table([['disaster', 'times', 'outage', 'everybody', 'itself', 'in step'], ...disasterRows(rounds)]),
    '',
    'Recovery by kind of load, over all disasters.',
    ...table([['load', 'outage', 'everybody'], ...loadRows(rounds)]),
    '',
    `Streams that began: ${ends.done} ended with task.done, ${ends.error} with task.error, ${ends.closed} with a closed connection, ${ends.hung} fell silent.`,
    ...ledgers
      .filter(({ refusals }) => refusals.size > 0)
      .map((ledger) => `${ledger.kind} refused: ${refusals(ledger)}`),
    '',
    ...table([
      [
        'load',
        'attempted',
        'acknowledged',
        'refused',
        'unknown',
        'again',
        'lost',
        'gone',
        'doubled',
        'disorder',
        'hung',
        'unclear',
      ],
      ...ledgers.map(ledgerRow),
    ]),
    '',
    ...broken.map((text) => `! ${text}`),
    broken.length === 0 ? 'every promise was kept' : `${broken.length} promises were broken`,
    '',
  ].join('\n')
}

function spread(values: readonly number[]): string {
  if (values.length === 0) return '–'
  return [0.5, 0.99, 1].map((p) => seconds(quantile(values, p))).join(' / ')
}

function disasterRows(rounds: readonly Round[]): readonly string[][] {
  const kinds = [...new Set(rounds.map(({ kind }) => kind))].sort()
  return kinds.map((kind) => {
    const those = rounds.filter((round) => round.kind === kind)
    const worst = (of: 'outageMs' | 'everyoneMs'): string =>
      spread(those.map(({ recoveries }) => Math.max(...[...recoveries.values()].map((recovery) => recovery[of]))))
    const after = (of: 'itselfMs' | 'inStepMs'): string =>
      spread(those.map((round) => round[of]).filter((took) => took !== undefined))
    return [kind, String(those.length), worst('outageMs'), worst('everyoneMs'), after('itselfMs'), after('inStepMs')]
  })
}

function loadRows(rounds: readonly Round[]): readonly string[][] {
  const kinds = [...new Set(rounds.flatMap(({ recoveries }) => [...recoveries.keys()]))].sort()
  return kinds.map((kind) => {
    const those = rounds.flatMap(({ recoveries }) => recoveries.get(kind) ?? [])
    return [kind, spread(those.map(({ outageMs }) => outageMs)), spread(those.map(({ everyoneMs }) => everyoneMs))]
  })
}

function refusals({ refusals }: Ledger): string {
  return [...refusals].map(([code, count]) => `${code} ${count}`).join(', ')
}

function ledgerRow(ledger: Ledger): string[] {
  const { kind, attempted, acknowledged, refused, unknown, again } = ledger
  const counts = [attempted, acknowledged, refused, unknown, again, ...BREACHES.map((breach) => ledger.count(breach))]
  return [kind, ...counts.map(String)]
}
