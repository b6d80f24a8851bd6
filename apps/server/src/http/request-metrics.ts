import type { SeriesDescription } from '../metrics/series-description.ts'

const NAME = 'broker_request_duration_seconds'
const HELP =
  'Time from the arrival of a request to its answer, by connector and outcome, including the waits of long polls and commands.'

/** In seconds: from a durable send on a fast disk to a command that waits for an hour. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3600]

/** The requests of one connector with one outcome. */
class Series {
  readonly #labels: string
  /** Counts by the first bound that is not exceeded. The last count is above all bounds. */
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
 * Measures the requests of the connectors. This histogram is not prom-client's: observing a value
 * there takes longer than all other counting for a request, and every request is observed.
 */
export class RequestDurations {
  readonly #series: Series[] = []

  /**
   * Returns the function that records a request's outcome and duration for one connector. Both
   * labels are constants, so they need no escapes.
   */
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

  /** Returns the histogram in Prometheus' text format. */
  text(): string {
    const lines = this.#series.flatMap((series) => series.lines())
    return [`# HELP ${NAME} ${HELP}`, `# TYPE ${NAME} histogram`, ...lines, ''].join('\n')
  }
}
