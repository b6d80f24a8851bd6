import { Metrics } from '../../src/metrics/metrics.ts'
import { table } from './markdown.ts'

const noEngine = (): Promise<never> => Promise.reject(new Error('no engine'))

/** The broker's own series: those that prom-client adds for the process are not listed. */
export async function metricsTable(): Promise<string> {
  using metrics = new Metrics()
  metrics.watchEngine(() => Promise.reject(new Error('no engine')))
  metrics.watchPauses(noEngine)
  metrics.watchNode({ version: '', engine: '', state: () => Promise.reject(new Error('no node')) })
  await metrics.watchQueues(
    { queues: { oldestWaiting: noEngine }, channels: { names: noEngine, states: noEngine } },
    { isListed: () => false, log: { warn() {} } },
  )
  metrics.forAgents()
  metrics.forWebhooks()
  const rows = metrics
    .describe()
    .filter(({ name }) => name.startsWith('broker_'))
    .toSorted((a, b) => a.name.localeCompare(b.name))
    .map(({ name, type, labels, help }) => [
      `\`${name}\``,
      type,
      labels.map((label) => `\`${label}\``).join(', '),
      help,
    ])
  return table(['series', 'type', 'labels', 'meaning'], rows)
}
