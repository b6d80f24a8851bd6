import type { GetData } from '../../api/client.ts'
import { get } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { usePages } from '../../api/use-pages.ts'
import { hasText, plural, UserText } from '../../components/values.tsx'
import { Empty, Page, Reading } from '../../components/page.tsx'
import { Search } from '../../components/controls.tsx'
import { Table } from '../../components/table.tsx'
import { go, href } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { WebhookDialog, WebhookSource, WebhookState } from './webhook-dialog.tsx'

type Listed = GetData<'/api/webhooks'>['items'][number]

const NONE: readonly Listed[] = []

/** The webhook subscriptions; the place `webhooks/ID` is one of them. */
export function Webhooks({ place }: ScreenProps) {
  const [, id] = place.path
  const { search = '' } = place.query
  const { data, error, loading, refresh } = usePages(
    'webhooks',
    (cursor, signal) => get('/api/webhooks', { limit: 1_000, ...cursor }, signal),
    3_000,
  )
  const items = data ?? NONE
  const shown = items.filter((one) => matches(one, search))
  const opened = items.find((one) => one.id === id)
  return (
    <Page
      title="Webhooks"
      note={data && items.length > 0 ? plural(items.length, 'subscription') : undefined}
      actions={<Search label="Find a subscription" />}
    >
      <Reading of={{ error, loading }} />
      {data?.length === 0 && <None />}
      {items.length > 0 && (
        <Table
          label="Webhook subscriptions"
          empty="No subscription has this text in its channel, endpoint, owner or id."
          rows={shown}
          keyOf={(one) => one.id}
          onOpen={(one) => go(['webhooks', one.id], place.query)}
          isSelected={(one) => one.id === id}
          columns={[
            {
              title: 'Endpoint',
              cell: (one) => (
                <a href={href(['webhooks', one.id], place.query)}>
                  <UserText>{one.endpoint_host}</UserText>
                </a>
              ),
            },
            {
              title: 'Channel',
              cell: ({ type, channel }) => <WebhookSource type={type} channel={channel} />,
            },
            { title: 'Owner', width: '11rem', wideOnly: true, text: 'owner' },
            { title: 'Format', width: '9rem', wideOnly: true, cell: ({ format }) => format },
            { title: 'State', width: '8rem', cell: ({ state }) => <WebhookState state={state} /> },
            { title: 'Reason', wideOnly: true, text: 'reason' },
          ]}
        />
      )}
      {id !== undefined && data && (
        <WebhookDialog webhook={opened} onClose={() => go(['webhooks'], place.query)} onChanged={refresh} />
      )}
    </Page>
  )
}

function matches({ id, channel, endpoint_host: host, owner }: Listed, search: string): boolean {
  return hasText(search, id, channel, host, owner)
}

/** Tells a server without subscriptions from one whose webhooks are turned off. */
function None() {
  const { data } = useRoute('/api/settings', {})
  if (data === undefined) return null
  const isOn = data.items.find(({ key }) => key === 'webhooks.enable')?.value === true
  return isOn ? (
    <Empty>No client has subscribed. A client subscribes with POST /ce/subscriptions at the shared listener.</Empty>
  ) : (
    <Empty>
      Webhooks are turned off. Set <a href={href(['settings'], { search: 'webhooks' })}>WEBHOOKS_ENABLE</a> to use them.
    </Empty>
  )
}
