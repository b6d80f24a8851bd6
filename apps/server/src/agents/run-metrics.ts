import type { AgentInboxes, RunCounts } from '@signalbox/connector-a2a'
import type { Registry } from 'prom-client'
import { Counter, Gauge } from 'prom-client'

import type { InboxDepth } from './inbox-depths.ts'
import { InboxDepths } from './inbox-depths.ts'

/** The calls whose answers are kept, and the inboxes, as the metrics read them on a scrape. */
export interface RunSource {
  readonly counts: RunCounts
  /** Returns the number of these calls in progress on this node. */
  readonly inProgress: () => number
  /** Undefined if no answers are kept. */
  readonly inboxes: Pick<AgentInboxes, 'ids' | 'phases' | 'status'> | undefined
}

/** The source before the gateway is open. */
export const NO_RUNS: RunSource = {
  counts: {
    appends: 0,
    events: 0,
    bytes: 0,
    replays: { complete: 0, gap: 0, refused: 0 },
    keyed: { first: 0, repeated: 0, refused: 0 },
    leases: { granted: 0, redelivered: 0, answered: 0, returned: 0, rejected: 0, lost: 0 },
  },
  inProgress: () => 0,
  inboxes: undefined,
}

/** The counters without a label, and those by outcome. */
const TOTALS = [
  [
    'appends',
    'broker_a2a_log_appends_total',
    'Writes into the log of kept answers of agents, each with one or more events.',
  ],
  ['events', 'broker_a2a_log_events_total', 'Events and answers of agents that were written into the log.'],
  ['bytes', 'broker_a2a_log_bytes_total', 'Bytes of these events and answers.'],
] as const
const OUTCOMES = [
  [
    'replays',
    'broker_a2a_replays_total',
    'Streams that continue with Last-Event-ID: complete, after a gap, or refused.',
  ],
  [
    'keyed',
    'broker_a2a_keyed_total',
    'Requests to agents with an idempotency key: the first, repeated, or refused because another request has the key.',
  ],
  [
    'leases',
    'broker_a2a_leases_total',
    'Leases of requests in inboxes: granted or redelivered; answered, returned, rejected or lost by the agent.',
  ],
] as const

/**
 * Registers the series of kept answers and inboxes. The gateway counts; a scrape copies. Without an agent with an inbox
 * a scrape reads nothing from the engine.
 */
export function registerRunMetrics(registry: Registry, source: () => RunSource): void {
  for (const [member, name, help] of TOTALS) {
    registry.registerMetric(
      new Counter({
        name,
        help,
        registers: [],
        collect() {
          this.reset()
          this.inc(source().counts[member])
        },
      }),
    )
  }
  for (const [member, name, help] of OUTCOMES) {
    registry.registerMetric(
      new Counter({
        name,
        help,
        labelNames: ['outcome'],
        registers: [],
        collect() {
          this.reset()
          for (const [outcome, count] of Object.entries(source().counts[member])) this.inc({ outcome }, count)
        },
      }),
    )
  }
  registry.registerMetric(
    new Gauge({
      name: 'broker_a2a_runs',
      help: 'Calls whose answers are kept: running on this node; and the tasks of inboxes on all nodes, by phase.',
      labelNames: ['phase'],
      registers: [],
      collect() {
        this.reset()
        const { inboxes, inProgress } = source()
        this.set({ phase: 'running' }, inProgress())
        for (const [phase, count] of Object.entries(inboxes?.phases() ?? {})) this.set({ phase }, count)
      },
    }),
  )
  const depths = new InboxDepths(() => source().inboxes)
  registerDepth(registry, depths, {
    name: 'broker_a2a_inbox_waiting',
    help: 'Requests that wait in the inbox of an agent.',
    read: ({ waiting }) => waiting,
  })
  registerDepth(registry, depths, {
    name: 'broker_a2a_inbox_oldest_seconds',
    help: 'Age of the oldest request that waits in the inbox of an agent; 0 if none waits.',
    read: ({ oldestAt }, now) => (oldestAt === undefined ? 0 : Math.max(0, now - oldestAt) / 1000),
  })
}

interface DepthSeries {
  readonly name: string
  readonly help: string
  readonly read: (depth: InboxDepth, now: number) => number
}

function registerDepth(registry: Registry, depths: InboxDepths, { name, help, read }: DepthSeries): void {
  registry.registerMetric(
    new Gauge({
      name,
      help,
      labelNames: ['agent_id'],
      registers: [],
      async collect() {
        const now = Date.now()
        const known = await depths.read()
        this.reset()
        for (const depth of known) this.set({ agent_id: depth.agentId }, read(depth, now))
      },
    }),
  )
}
