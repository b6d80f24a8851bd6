import type { AgentDirectory } from '@signalbox/broker-core/ports'
import { quietHook } from '@signalbox/http-kit/internal'
import type { AgentInbox } from '@signalbox/registry'

import { gatewayDirectory } from './gateway/agent-directory.ts'
import { LoggedCalls } from './gateway/logged-calls.ts'
import { Inboxes } from './inbox/inboxes.ts'
import type { OfflineDeliveryOptions } from './inbox/offline-delivery.ts'
import type { AgentInboxes } from './operators/agent-inboxes.ts'
import { agentInboxes } from './operators/agent-inboxes.ts'
import { RunCounters } from './operators/run-counts.ts'
import type { A2aDependencies, ResolvedA2aOptions } from './options.ts'
import { PushCalls } from './push/push-calls.ts'
import { LoggedTasks } from './runs/logged-tasks.ts'
import { RunLog } from './runs/run-log.ts'
import { Runs } from './runs/runs.ts'
import type { StreamLimits } from './stream/limits.ts'
import { resolveLimits } from './stream/limits.ts'
import type { TaskRecords } from './subscriber/isolation/task-records.ts'

export interface KeptAnswersParts extends A2aDependencies {
  readonly records: TaskRecords
  readonly streamLimits: StreamLimits
  /** Returns an agent that this node serves, and its card. */
  readonly find: OfflineDeliveryOptions['find']
  readonly failed: (error: unknown) => void
}

/** The log of the answers of agents, with its readers and writers. All members are undefined without a log. */
export class KeptAnswers {
  readonly counters = new RunCounters()
  readonly runs: Runs | undefined
  readonly tasks: LoggedTasks | undefined
  readonly calls: LoggedCalls | undefined
  readonly push: PushCalls | undefined
  readonly inboxes: Inboxes | undefined
  /** The inboxes of agents, for the routes of the registry. */
  readonly inbox: AgentInbox | undefined
  /** The inboxes of agents, for operators. */
  readonly operatorInboxes: AgentInboxes | undefined
  /** The agents, for other connectors. Present without a log, too. */
  readonly directory: AgentDirectory

  constructor(parts: KeptAnswersParts, options: ResolvedA2aOptions) {
    const { registry, requests } = parts
    if (options.log === 'auto') {
      const opened = openLog(parts, options, this.counters)
      const { inboxes, log } = opened
      this.runs = opened.runs
      this.tasks = opened.tasks
      this.calls = opened.calls
      this.push = opened.push
      this.inboxes = inboxes
      this.inbox = this.counters.countLeases(inboxes.forRoutes)
      this.operatorInboxes = agentInboxes({ ...parts, log, inbox: () => inboxes.inbox })
    }
    const onFinished = quietHook(options.hooks.directoryCallFinished?.bind(options.hooks))
    this.directory = gatewayDirectory(registry, requests, { logged: this.calls, inbox: this.inbox, onFinished })
  }

  /** Lets other nodes continue the streams that this node relays. */
  leave(): void {
    this.push?.close()
    this.runs?.leave()
  }

  async close(): Promise<void> {
    this.calls?.close()
    await this.inboxes?.close()
  }
}

function openLog(parts: KeptAnswersParts, options: ResolvedA2aOptions, counters: RunCounters) {
  const { records, requests, streamLimits, system } = parts
  const { logBytes: maxBytes, maxRuns: max, maxRunsPerCaller: maxPerCaller, push, shared } = options
  const maxEventBytes = options.agentMaxResponseBytes
  const keepMs = options.logSeconds * 1000
  const idleMs = options.maxSseIdleSeconds * 1000
  const log = new RunLog(system, { maxAgeMs: keepMs, maxBytes }, (chunk) => counters.appended(chunk))
  const runs = new Runs({ ...parts, log, shared, keepMs, max, maxPerCaller, idleMs, counters })
  const tasks = new LoggedTasks(log, records)
  const timeoutMs = requests.defaultTimeoutMs
  const isLeft = (run: string): boolean => runs.isLeft(run)
  const { silenceMs } = resolveLimits(streamLimits)
  const pushing = push && { ...parts, log, push, isolation: options.taskIsolation, silenceMs }
  return {
    log,
    runs,
    tasks,
    calls: new LoggedCalls({ ...parts, log, isLeft, counters }),
    push: pushing && new PushCalls(pushing),
    inboxes: new Inboxes({ ...parts, log, runs, tasks, keepMs, maxEventBytes, timeoutMs }),
  }
}
