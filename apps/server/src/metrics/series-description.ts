/** The description of a series in the documentation. */
export interface SeriesDescription {
  readonly name: string
  readonly type: string
  readonly labels: readonly string[]
  readonly help: string
}

/**
 * Describes a metric. prom-client's types omit the label names, and its `type` is not set, but its
 * class has it.
 */
export function describeSeries(metric: { readonly name: string; readonly help: string }): SeriesDescription {
  const labels: unknown = Reflect.get(metric, 'labelNames')
  return {
    name: metric.name,
    type: metric.constructor.name.toLowerCase(),
    labels: Array.isArray(labels) ? labels.map(String) : [],
    help: metric.help,
  }
}
