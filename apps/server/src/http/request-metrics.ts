import type { SeriesDescription } from '../metrics/series-description.ts'

const NAME = 'broker_request_duration_seconds'
const HELP =
  'From the arrival of a request to its answer, by connector and outcome. Long polls and commands count their waits.'

/** In seconds: from a durable send on a fast disk to a command that waits out its hour. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3600]

/** Requests of one connector that ended in one way. */
class Series {
  readonly #labels: string
  /** By the first bound that holds them; the last ones are past all bounds. */
  readonly #counts = new Float64Array(BOUNDS.length + 1)
  #seconds = 0

  constructor(connector: string, outcome: string) {
    this.#labels = `connector="${connector}",outcome="${outcome}"`
  }

  observe(seconds: number): void {
    let bucket = 0
    for (const bound of BOUNDS) {
      if (seconds <= bound) break
      bucket++
    }
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#seconds += seconds
  }

  lines(): string[] {
    let count = 0
    const buckets = Array.from(this.#counts, (more, i) => {
      count += more
      return `${NAME}_bucket{le="${BOUNDS[i] ?? '+Inf'}",${this.#labels}} ${count}`
    })
    return [...buckets, `${NAME}_sum{${this.#labels}} ${this.#seconds}`, `${NAME}_count{${this.#labels}} ${count}`]
  }
}

/**
 * Times the requests of the connectors. The one histogram that is not prom-client's: to observe a value takes that
 * longer than all else that is counted of a request, and this is done for each.
 */
export class RequestDurations {
  readonly #series: Series[] = []

  /** For one connector: how a request ended, and how long it took. Both are words of ours, and need no escapes. */
  of(connector: string): (outcome: string, seconds: number) => void {
    const byOutcome = new Map<string, Series>()
    return (outcome, seconds) => {
      let series = byOutcome.get(outcome)
      if (series === undefined) {
        byOutcome.set(outcome, (series = new Series(connector, outcome)))
        this.#series.push(series)
      }
      series.observe(seconds)
    }
  }

  describe(): SeriesDescription {
    return { name: NAME, type: 'histogram', labels: ['connector', 'outcome'], help: HELP }
  }

  /** In Prometheus' text format. */
  text(): string {
    const lines = this.#series.flatMap((series) => series.lines())
    return [`# HELP ${NAME} ${HELP}`, `# TYPE ${NAME} histogram`, ...lines, ''].join('\n')
  }
}
