import type { GetData } from '../../api/client.ts'
import { Panel } from '../../components/page.tsx'
import { Timeline } from '../../components/timeline.tsx'
import { UserText } from '../../components/user-text.tsx'

type Entry = GetData<'/api/trace'>['audit'][number]

/** The entries of the audit log that name the message, oldest first. */
export function AuditOfMessage({ entries }: { readonly entries: readonly Entry[] }) {
  return (
    <Panel title="Audit log" note="Entries that name the message">
      <Timeline
        label="Audit log"
        events={entries.toReversed().map(({ time, action, client, channel, detail = '', node }) => ({
          time,
          title: (
            <>
              <code>{action}</code> by <UserText>{client}</UserText>
            </>
          ),
          detail: (
            <>
              {channel !== undefined && <UserText>{`${channel} `}</UserText>}
              <UserText>{detail}</UserText> on {node}
            </>
          ),
        }))}
      />
    </Panel>
  )
}
