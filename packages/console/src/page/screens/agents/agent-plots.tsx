import { useMemo } from 'preact/hooks'

import type { HistoryData } from '../../api/use-history.ts'
import { perSecond, spanOf, RANGES, rangeOf, timesOf, useHistory } from '../../api/use-history.ts'
import { Empty, ErrorOf } from '../../components/feedback.tsx'
import { Segments } from '../../components/fields.tsx'
import { rate, span } from '../../components/format.ts'
import { Panel } from '../../components/page.tsx'
import { Plot } from '../../components/plot.tsx'
import { setQuery } from '../../router/location.ts'

interface AgentPlotsProps {
  readonly id: string
  readonly range: string | undefined
}

/** The calls, errors and latency of one agent. */
export function AgentPlots({ id, range: asked }: AgentPlotsProps) {
  const range = rangeOf(asked)
  const { data, error } = useHistory(range, { agent_id: id, channels: 0 })
  return (
    <Panel
      title="Calls"
      note="Calls at /a2a of this node"
      actions={
        <Segments
          label="Time span of the plots"
          value={range}
          options={RANGES}
          onChange={(value) => setQuery({ range: value })}
        />
      }
    >
      <ErrorOf error={error} />
      {data && <Lines history={data} spanMs={spanOf(range, data)} />}
    </Panel>
  )
}

function Lines({ history, spanMs }: { readonly history: HistoryData; readonly spanMs: number }) {
  const times = useMemo(() => timesOf(history), [history])
  const [agent] = history.agents
  const lines = useMemo(
    () =>
      agent && {
        calls: [
          { label: 'calls', values: perSecond(agent.calls, history) },
          { label: 'errors', values: perSecond(agent.errors, history) },
        ],
        latency: [{ label: 'mean', values: agent.latency_seconds }],
      },
    [history],
  )
  if (lines === undefined || history.steps === 0)
    return <Empty>No call to this agent has ended here. The plots begin with the first one.</Empty>
  return (
    <div class="grid">
      <Plot title="Calls and errors" times={times} spanMs={spanMs} lines={lines.calls} format={rate} />
      <Plot
        title="Latency"
        times={times}
        spanMs={spanMs}
        lines={lines.latency}
        format={(seconds) => span(seconds * 1_000)}
      />
    </div>
  )
}
