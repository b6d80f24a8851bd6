import { useState } from 'preact/hooks'

import { get } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import { TYPE_NAMES } from '../../components/channel-link.tsx'
import { Empty, ErrorOf } from '../../components/feedback.tsx'
import { Segments } from '../../components/fields.tsx'
import { plural } from '../../components/format.ts'
import { Panel } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { UserText } from '../../components/user-text.tsx'
import { RoutingDrawing } from './routing-drawing.tsx'

/** The routing table as a picture or as a table. */
export function Routing() {
  const [view, setView] = useState<'picture' | 'table'>('picture')
  const { data, error } = useData('routing', (signal) => get('/api/routing', {}, signal), 30_000)
  const rules = data?.rules ?? []
  return (
    <Panel
      title="Routing"
      note={
        rules.length > 0 ? `${plural(rules.length, 'rule')}; every rule that matches copies the message` : undefined
      }
      actions={
        rules.length > 0 && (
          <Segments
            label="Form of the routing table"
            value={view}
            options={[
              ['picture', 'Picture'],
              ['table', 'Table'],
            ]}
            onChange={setView}
          />
        )
      }
    >
      <ErrorOf error={error} />
      {data && rules.length === 0 && <Empty>There is no routing table. ROUTING_FILE names its file.</Empty>}
      {rules.length > 0 && view === 'picture' && <RoutingDrawing rules={rules} />}
      {rules.length > 0 && view === 'table' && (
        <Table
          label="Routing table"
          rows={rules}
          keyOf={({ index }) => String(index)}
          columns={[
            { id: 'index', title: 'Rule', width: '4rem', numeric: true, cell: ({ index }) => index },
            {
              id: 'type',
              title: 'Condition',
              width: '9rem',
              wideOnly: true,
              cell: ({ key_type: type }) => (type === 'regex' ? 'Channel name' : 'CESQL'),
            },
            {
              id: 'key',
              title: 'Key',
              cell: ({ key }) => (
                <code>
                  <UserText>{key}</UserText>
                </code>
              ),
            },
            {
              id: 'targets',
              title: 'Copies go to',
              cell: ({ targets }) => (
                <UserText max={1_000}>
                  {targets.map(({ type, channel }) => `${TYPE_NAMES[type]} ${channel}`).join(', ')}
                </UserText>
              ),
            },
          ]}
        />
      )}
    </Panel>
  )
}
