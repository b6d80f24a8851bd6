import { count } from '../../components/format.ts'
import { Panel } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'
import { UserText } from '../../components/user-text.tsx'
import type { ListedAgent } from './agent-list.tsx'
import { Liveness } from './liveness.tsx'

/** The instances of an agent, among which the gateway shares its requests. */
export function Instances({ instances }: { readonly instances: NonNullable<ListedAgent['instances']> }) {
  return (
    <Panel title="Instances" note={count(instances.length)}>
      <Table
        label="Instances"
        rows={instances}
        keyOf={({ instance_id }) => instance_id}
        columns={[
          { id: 'id', title: 'Instance', cell: ({ instance_id }) => <UserText>{instance_id}</UserText> },
          { id: 'url', title: 'Address', wideOnly: true, cell: ({ url }) => <UserText>{url}</UserText> },
          { id: 'state', title: 'State', width: '8rem', cell: (instance) => <Liveness agent={instance} /> },
          { id: 'seen', title: 'Last seen', width: '8rem', cell: ({ last_seen }) => <Ago value={last_seen} /> },
          {
            id: 'flight',
            title: 'In flight',
            width: '6rem',
            numeric: true,
            cell: ({ in_flight }) => count(in_flight),
          },
        ]}
      />
    </Panel>
  )
}
