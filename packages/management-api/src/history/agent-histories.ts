import { MostActive } from './most-active.ts'
import { shownValues } from './series-table.ts'
import type { SeriesRange } from './time-series.ts'
import { TimeSeries } from './time-series.ts'

/** The requests to one agent since the start. */
export interface AgentCallTotals {
  readonly calls: number
  readonly errors: number
  /** The sum of their durations. */
  readonly seconds: number
}

/** Returns the totals of each agent. */
export type ReadAgentCalls = () => Iterable<readonly [agentId: string, totals: AgentCallTotals]>

const NO_CALLS: AgentCallTotals = { calls: 0, errors: 0, seconds: 0 }

/** The series of one agent. */
class AgentHistory {
  readonly agentId: string
  readonly #calls: TimeSeries
  readonly #errors: TimeSeries
  readonly #seconds: TimeSeries

  constructor(agentId: string, step: number) {
    this.agentId = agentId
    this.#calls = new TimeSeries('sum', step, true)
    this.#errors = new TimeSeries('sum', step, true)
    this.#seconds = new TimeSeries('sum', step, true)
  }

  set(step: number, { calls, errors, seconds }: AgentCallTotals): void {
    this.#calls.set(step, calls)
    this.#errors.set(step, errors)
    this.#seconds.set(step, seconds)
  }

  shown(range: SeriesRange) {
    const calls = this.#calls.values(range)
    const seconds = this.#seconds.values(range)
    // Without a call this is 0 / 0, which is NaN: no value.
    const latency = seconds.map((sum, i) => sum / (calls[i] ?? Number.NaN))
    return {
      agent_id: this.agentId,
      calls: shownValues(calls),
      errors: shownValues(this.#errors.values(range)),
      latency_seconds: shownValues(latency),
    }
  }
}

/** The histories of the most active agents. */
export class AgentHistories {
  readonly #active: MostActive<AgentHistory>
  #last = new Map<string, AgentCallTotals>()

  constructor(limit: number) {
    this.#active = new MostActive(limit)
  }

  /** Sets the values of a step from the totals. Agents without totals were removed. */
  set(step: number, totals: Iterable<readonly [string, AgentCallTotals]>): void {
    this.#active.decay()
    const last = this.#last
    this.#last = new Map()
    for (const [agentId, { calls, errors, seconds }] of totals) {
      const before = last.get(agentId) ?? NO_CALLS
      // The series of an agent that was removed and registered again starts at 0.
      const base = before.calls > calls ? NO_CALLS : before
      this.#last.set(agentId, { calls, errors, seconds })
      const grown = { calls: calls - base.calls, errors: errors - base.errors, seconds: seconds - base.seconds }
      const history =
        grown.calls > 0
          ? this.#active.add(agentId, grown.calls, () => new AgentHistory(agentId, step))
          : this.#active.get(agentId)
      history?.set(step, grown)
    }
    for (const { agentId } of this.#active.list()) if (!this.#last.has(agentId)) this.#active.delete(agentId)
  }

  /** Returns the most active agents, at most `limit`. */
  mostActive(limit: number, range: SeriesRange) {
    return this.#active
      .list()
      .slice(0, limit)
      .map((history) => history.shown(range))
  }

  /** Returns the history of one agent; undefined without calls. */
  of(agentId: string, range: SeriesRange) {
    return this.#active.get(agentId)?.shown(range)
  }
}
