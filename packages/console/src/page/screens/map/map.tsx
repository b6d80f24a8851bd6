import { useMemo } from 'preact/hooks'

import { useRoute } from '../../api/use-data.ts'
import { Search, Segments, Select } from '../../components/controls.tsx'
import { Empty, Page, Panel, Reading } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { count, plural, span, UserText } from '../../components/values.tsx'
import { href, setQuery } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { Drawing } from './drawing.tsx'
import type { MapData, MapEdge, MapNode } from './layout.ts'
import './map.css'
import { kindOf, nameOf, pace } from './values.tsx'

const WINDOWS = [
  ['minute', 'Last minute'],
  ['hour', 'Last hour'],
] as const

type Window = (typeof WINDOWS)[number][0]

/** The nodes of a column that are drawn. */
const SIZES = ['10', '25', '50', '100', '200'] as const

type Size = (typeof SIZES)[number]

const DEFAULT_SIZE: Size = '25'

/** Who talks to whom. The place `map/client/NAME` is the traffic of one client. */
export function TrafficMap({ place }: ScreenProps) {
  const { search = '', window: given, nodes } = place.query
  const [, part, client] = place.path
  const window: Window = given === 'hour' ? 'hour' : 'minute'
  const size = SIZES.find((one) => one === nodes) ?? DEFAULT_SIZE
  const choice = (
    <Segments
      label="Time"
      value={window}
      options={WINDOWS}
      onChange={(value) => setQuery({ window: value === 'minute' ? undefined : value })}
    />
  )
  if (part === 'client' && client !== undefined) {
    return (
      <Page
        up={{ title: 'Map', to: href(['map'], { window: given }) }}
        title={<UserText>{client}</UserText>}
        note="Client"
        actions={
          <>
            {choice} <a href={href(['audit'], { client })}>Audit log of this client</a>
          </>
        }
      >
        <Traffic key={client} window={window} size={size} client={client} search="" />
      </Page>
    )
  }
  return (
    <Page
      title="Map"
      actions={
        <>
          <Search label="Find a node" />
          <Select
            label="Nodes of each column"
            value={size}
            options={SIZES.map((one) => [one, `${one} nodes`] as const)}
            onChange={(value) => setQuery({ nodes: value === DEFAULT_SIZE ? undefined : value })}
          />
          {choice}
        </>
      }
    >
      <Traffic window={window} size={size} client={undefined} search={search} />
    </Page>
  )
}

interface TrafficProps {
  readonly window: Window
  readonly size: Size
  readonly client: string | undefined
  readonly search: string
}

const EVERY_MS = 5_000

function Traffic({ window, size, client, search }: TrafficProps) {
  const query = { window, nodes: Number(size), client, search }
  const map = useRoute('/api/map', query, EVERY_MS)
  const { data } = map
  const linkOf = (node: MapNode): string => placeOf(node, { window, size, search, client })
  return (
    <>
      <Reading of={map} />
      {data && (
        <>
          <p class="muted map-note">
            Traffic of the node <UserText>{data.node}</UserText> in the last {span(Math.round(data.seconds) * 1_000)},
            from left to right. A thicker line has more messages; a dashed line with ✕ has errors.
          </p>
          {data.edges.length === 0 ? (
            <Nothing window={window} filtered={search !== '' || client !== undefined} />
          ) : (
            <Drawing name={JSON.stringify(query)} data={data} linkOf={linkOf} />
          )}
          <Others data={data} />
          {data.edges.length > 0 && <Connections data={data} linkOf={linkOf} />}
        </>
      )}
    </>
  )
}

function Nothing({ window, filtered }: { readonly window: Window; readonly filtered: boolean }) {
  return (
    <Empty>
      No message has passed in the last {window}
      {filtered ? ' that fits.' : '.'} {window === 'minute' && 'Choose the last hour, or send one in Channels.'}
    </Empty>
  )
}

function Others({ data: { others, total_edges: total } }: { readonly data: MapData }) {
  if (others.messages === 0 && others.errors === 0) return null
  return (
    <p class="muted map-note">
      {plural(others.messages, 'message')} and {plural(others.errors, 'error')} more belong to connections that are not
      listed: more than {count(total)} are active.
    </p>
  )
}

/** Returns the page of a node; of the node that stands for others, the map with more nodes. */
function placeOf({ kind, name, type = 'queues' }: MapNode, { window, size, search, client }: TrafficProps): string {
  const query = { window: window === 'minute' ? undefined : window }
  if (kind === 'channel') return href(['channels', type, name])
  if (kind === 'agent') return href(['agents', name])
  if (kind === 'webhook') return href(['webhooks', name])
  if (kind !== 'more') return href(['map', 'client', name], query)
  const nodes = SIZES[SIZES.indexOf(size) + 1] ?? size
  return href(client === undefined ? ['map'] : ['map', 'client', client], { ...query, search, nodes })
}

interface ConnectionsProps {
  readonly data: MapData
  readonly linkOf: (node: MapNode) => string
}

/** The edges of the picture as a table. */
function Connections({ data: { edges, nodes, seconds }, linkOf }: ConnectionsProps) {
  const byId = useMemo(() => new Map(nodes.map((node) => [node.id, node])), [nodes])
  const end = (id: string) => {
    const node = byId.get(id)
    return node && <End node={node} link={linkOf(node)} />
  }
  return (
    <Panel title="Connections" note={plural(edges.length, 'connection')}>
      <Table<MapEdge>
        label="Connections"
        rows={edges}
        keyOf={({ from, to }) => `${from} ${to}`}
        columns={[
          { title: 'From', cell: ({ from }) => end(from) },
          { title: 'To', cell: ({ to }) => end(to) },
          { title: 'Messages', width: '6rem', count: 'messages' },
          {
            title: 'Rate',
            width: '6rem',
            numeric: true,
            wideOnly: true,
            cell: ({ messages }) => pace(messages, seconds),
          },
          { title: 'Errors', width: '5rem', count: 'errors' },
          {
            title: 'Latency',
            width: '6rem',
            numeric: true,
            wideOnly: true,
            cell: ({ latency_seconds: latency }) => (latency === null ? '–' : span(latency * 1_000)),
          },
        ]}
      />
    </Panel>
  )
}

function End({ node, link }: { readonly node: MapNode; readonly link: string }) {
  return (
    <>
      <a href={link}>
        <UserText>{nameOf(node)}</UserText>
      </a>{' '}
      <span class="muted wide-only">{kindOf(node)}</span>
    </>
  )
}
