import type { GetData } from '../../api/client.ts'
import type { HistoryData } from '../../api/use-history.ts'
import { total } from '../../api/use-history.ts'
import { Ago, Badge, ChannelLink, count, span, TYPE_NAMES, UserText } from '../../components/values.tsx'
import { Empty, Panel } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { go, href } from '../../router/location.ts'
import type { Snapshot } from './figures.tsx'

export function Queues({ snapshot }: { readonly snapshot: Snapshot }) {
  return (
    <Panel
      title="Deepest queues"
      actions={<a href={href(['channels'], { type: 'queues', sort: 'depth' })}>All queues</a>}
    >
      {snapshot.deepest_queues.length === 0 ? (
        <Empty>No queue has waiting messages.</Empty>
      ) : (
        <Table
          label="Deepest queues"
          rows={snapshot.deepest_queues}
          keyOf={({ name }) => name}
          onOpen={({ name }) => go(['channels', 'queues', name])}
          columns={[
            { id: 'name', title: 'Queue', cell: ({ name }) => <ChannelLink type="queues" name={name} /> },
            { id: 'waiting', title: 'Waiting', numeric: true, cell: ({ waiting }) => count(waiting) },
            {
              id: 'oldest',
              title: 'Oldest',
              numeric: true,
              cell: ({ oldest_waiting }) => (oldest_waiting === null ? '–' : <Ago value={oldest_waiting} />),
            },
            { id: 'flight', title: 'In flight', numeric: true, cell: ({ in_flight }) => count(in_flight) },
            {
              id: 'dead',
              title: 'Dead-lettered',
              numeric: true,
              wideOnly: true,
              cell: ({ dead_lettered }) => count(dead_lettered),
            },
          ]}
        />
      )}
    </Panel>
  )
}

export function TopChannels({ snapshot }: { readonly snapshot: Snapshot }) {
  return (
    <Panel title="Busiest channels" actions={<a href={href(['channels'], { sort: 'messages_in' })}>All channels</a>}>
      {snapshot.top_channels.length === 0 ? (
        <Empty>No message has passed yet. Send one in Channels.</Empty>
      ) : (
        <Table
          label="Busiest channels"
          rows={snapshot.top_channels}
          keyOf={({ type, name }) => `${type} ${name}`}
          onOpen={({ type, name }) => go(['channels', type, name])}
          columns={[
            { id: 'name', title: 'Channel', cell: ({ type, name }) => <ChannelLink type={type} name={name} /> },
            { id: 'type', title: 'Type', wideOnly: true, cell: ({ type }) => TYPE_NAMES[type] },
            { id: 'in', title: 'In', numeric: true, cell: ({ messages_in }) => count(messages_in) },
            { id: 'out', title: 'Out', numeric: true, cell: ({ messages_out }) => count(messages_out) },
            {
              id: 'last',
              title: 'Last activity',
              numeric: true,
              cell: ({ last_activity }) => <Ago value={last_activity} />,
            },
          ]}
        />
      )}
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
      {failing.length === 0 ? (
        <Empty>No call of an agent has failed.</Empty>
      ) : (
        <Table
          label="Failing agents"
          rows={failing}
          keyOf={({ id }) => id}
          columns={[
            {
              id: 'agent',
              title: 'Agent',
              cell: ({ id }) => (
                <a href={href(['agents', id])}>
                  <UserText>{id}</UserText>
                </a>
              ),
            },
            { id: 'errors', title: 'Failed', numeric: true, cell: ({ errors }) => count(errors) },
            { id: 'calls', title: 'Calls', numeric: true, cell: ({ calls }) => count(calls) },
          ]}
        />
      )}
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
          { id: 'node', title: 'Node', cell: ({ node }) => <UserText>{node === '' ? 'not named' : node}</UserText> },
          { id: 'state', title: 'State', cell: (node) => <NodeBadge node={node} /> },
          { id: 'engine', title: 'Engine', wideOnly: true, cell: ({ engine }) => engine },
          { id: 'version', title: 'Version', cell: ({ version }) => (version === '' ? 'not known' : version) },
          {
            id: 'uptime',
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
  return (
    <Badge kind={ready && healthy ? 'good' : 'bad'}>{healthy ? (ready ? 'Ready' : 'Not ready') : 'Not healthy'}</Badge>
  )
}
