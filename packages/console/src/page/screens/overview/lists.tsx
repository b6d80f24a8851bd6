import type { GetData } from '../../api/client.ts'
import type { HistoryData } from '../../api/use-history.ts'
import { total } from '../../api/use-history.ts'
import { Ago, ChannelLink, NodeHealth, span, TYPE_NAMES, UserText } from '../../components/values.tsx'
import { Panel } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { go, href } from '../../router/location.ts'
import type { Snapshot } from './figures.tsx'

export function Queues({ snapshot }: { readonly snapshot: Snapshot }) {
  return (
    <Panel
      title="Deepest queues"
      actions={<a href={href(['channels'], { type: 'queues', sort: 'depth' })}>All queues</a>}
    >
      <Table
        label="Deepest queues"
        empty="No queue has waiting messages."
        rows={snapshot.deepest_queues}
        keyOf={({ name }) => name}
        onOpen={({ name }) => go(['channels', 'queues', name])}
        columns={[
          { title: 'Queue', cell: ({ name }) => <ChannelLink type="queues" name={name} /> },
          { title: 'Waiting', count: 'waiting' },
          {
            title: 'Oldest',
            numeric: true,
            cell: ({ oldest_waiting }) => (oldest_waiting === null ? '–' : <Ago value={oldest_waiting} />),
          },
          { title: 'In flight', count: 'in_flight' },
          { title: 'Dead-lettered', wideOnly: true, count: 'dead_lettered' },
        ]}
      />
    </Panel>
  )
}

export function TopChannels({ snapshot }: { readonly snapshot: Snapshot }) {
  return (
    <Panel title="Busiest channels" actions={<a href={href(['channels'], { sort: 'messages_in' })}>All channels</a>}>
      <Table
        label="Busiest channels"
        empty="No message has passed yet. Send one in Channels."
        rows={snapshot.top_channels}
        keyOf={({ type, name }) => `${type} ${name}`}
        onOpen={({ type, name }) => go(['channels', type, name])}
        columns={[
          { title: 'Channel', cell: ({ type, name }) => <ChannelLink type={type} name={name} /> },
          { title: 'Type', wideOnly: true, cell: ({ type }) => TYPE_NAMES[type] },
          { title: 'In', count: 'messages_in' },
          { title: 'Out', count: 'messages_out' },
          { title: 'Last activity', numeric: true, ago: 'last_activity' },
        ]}
      />
    </Panel>
  )
}

export function FailingAgents({ history }: { readonly history: HistoryData | undefined }) {
  const failing = (history?.agents ?? [])
    .map(({ agent_id: id, calls, errors }) => ({ id, calls: total(calls), errors: total(errors) }))
    .filter(({ errors }) => errors > 0)
    .toSorted((a, b) => b.errors - a.errors)
  return (
    <Panel title="Failing agents" note="in the time span">
      <Table
        label="Failing agents"
        empty="No call of an agent has failed."
        rows={failing}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Agent',
            cell: ({ id }) => (
              <a href={href(['agents', id])}>
                <UserText>{id}</UserText>
              </a>
            ),
          },
          { title: 'Failed', count: 'errors' },
          { title: 'Calls', count: 'calls' },
        ]}
      />
    </Panel>
  )
}

type Node = GetData<'/api/nodes'>['items'][number]

/** The nodes of the cluster. A node knows the names and versions of the others, and not their states. */
export function Nodes({ nodes }: { readonly nodes: readonly Node[] }) {
  const versions = new Set(nodes.map(({ version }) => version))
  return (
    <Panel title="Nodes" note={versions.size > 1 ? `${versions.size} versions` : undefined}>
      <Table
        label="Nodes"
        rows={nodes}
        keyOf={({ id }) => id ?? ''}
        columns={[
          { title: 'Node', cell: ({ node }) => <UserText>{node === '' ? 'not named' : node}</UserText> },
          { title: 'State', cell: (node) => <NodeBadge node={node} /> },
          { title: 'Engine', wideOnly: true, cell: ({ engine }) => engine },
          { title: 'Version', cell: ({ version }) => (version === '' ? 'not known' : version) },
          {
            title: 'Up',
            numeric: true,
            cell: ({ uptime_seconds }) => (uptime_seconds === null ? '–' : span(uptime_seconds * 1_000)),
          },
        ]}
      />
    </Panel>
  )
}

function NodeBadge({ node: { ready, healthy, last_seen } }: { readonly node: Node }) {
  if (ready === null || healthy === null)
    return (
      <>
        Seen <Ago value={last_seen} />
      </>
    )
  return <NodeHealth ready={ready} healthy={healthy} />
}
