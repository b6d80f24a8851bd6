import { readReadiness } from '../../api/client.ts'
import { useData, useRoute } from '../../api/use-data.ts'
import { useHistory } from '../../api/use-history.ts'
import { Badge } from '../../components/values.tsx'
import { ErrorOf, Loading, Page, Problem } from '../../components/page.tsx'
import { HistoryPlots, RangeChoice, useRange } from '../../components/plot.tsx'
import { Figures } from './figures.tsx'
import { FailingAgents, Nodes, Queues, TopChannels } from './lists.tsx'
import { plotsOfNode } from './plots.tsx'

/** The state of the broker at a glance. */
export function Overview() {
  const range = useRange()
  const snapshot = useRoute('/api/snapshot', {}, 5_000)
  const nodes = useRoute('/api/nodes', {}, 5_000)
  const readiness = useData('ready', readReadiness, 5_000)
  const history = useHistory(range, { channels: 0, agents: 20 })
  const failed = readiness.data?.checks.filter(({ ok }) => !ok) ?? []
  const healthy = readiness.data?.ready === true && readiness.data.healthy
  return (
    <Page
      title="Overview"
      note={readiness.data && <Badge kind={healthy ? 'good' : 'bad'}>{healthy ? 'Healthy' : 'Needs attention'}</Badge>}
      actions={<RangeChoice />}
    >
      {failed.map(({ name, detail }) => (
        <Problem key={name}>
          <strong>{name}</strong>: {detail}
        </Problem>
      ))}
      <ErrorOf error={snapshot.error ?? history.error} />
      {snapshot.loading && <Loading />}
      {snapshot.data && <Figures snapshot={snapshot.data} history={history.data} />}
      {history.data && <HistoryPlots history={history.data} plotsOf={plotsOfNode} />}
      {snapshot.data && (
        <>
          <div class="grid">
            <Queues snapshot={snapshot.data} />
            <TopChannels snapshot={snapshot.data} />
          </div>
          <div class="grid">
            <FailingAgents history={history.data} />
            {nodes.data && <Nodes nodes={nodes.data.items} />}
          </div>
        </>
      )}
    </Page>
  )
}
