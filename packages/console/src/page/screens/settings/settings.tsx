import { useMemo } from 'preact/hooks'

import type { GetData } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { count, hasText, InlineCode, UserCode, UserText } from '../../components/values.tsx'
import { Empty, Page, Panel, Reading } from '../../components/page.tsx'
import { Search, Segments } from '../../components/controls.tsx'
import type { Column } from '../../components/table.tsx'
import { Table } from '../../components/table.tsx'
import { setQuery } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { Routing } from './routing.tsx'
import './settings.css'

type Setting = GetData<'/api/settings'>['items'][number]

/** The effective configuration with the source of each value, and the routing table. */
export function Settings({ place }: ScreenProps) {
  const { search = '', show } = place.query
  const all = show !== 'changed'
  const { data, error, loading } = useRoute('/api/settings', {}, 30_000)
  const groups = useMemo(() => groupsOf(data?.items ?? [], search, all), [data, search, all])
  const changed = data?.items.filter(({ origin }) => origin !== 'default').length
  return (
    <Page
      title="Settings"
      note={data && `${count(data.items.length)} settings, ${count(changed ?? 0)} not at their default`}
      actions={
        <>
          <Segments
            label="Settings to show"
            value={all ? 'all' : 'changed'}
            options={[
              ['all', 'All'],
              ['changed', 'Changed'],
            ]}
            onChange={(value) => setQuery({ show: value === 'all' ? undefined : value })}
          />
          <Search label="Find a setting" />
        </>
      }
    >
      <Reading of={{ error, loading }} />
      {search === '' && all && <Routing />}
      {data && groups.length === 0 && (
        <Empty>No setting {all ? '' : 'that differs from its default '}has this text.</Empty>
      )}
      {groups.map(([title, settings]) => (
        <Panel key={title} class="settings" title={<InlineCode text={title} />}>
          <Table label={title} rows={settings} keyOf={({ key }) => key} columns={COLUMNS} />
        </Panel>
      ))}
    </Page>
  )
}

/** Returns the settings that the operator looks for, by the headings of their documentation. */
function groupsOf(
  settings: readonly Setting[],
  search: string,
  all: boolean,
): readonly (readonly [string, readonly Setting[]])[] {
  const groups = new Map<string, Setting[]>()
  for (const setting of settings) {
    const { key, env, description, origin, group } = setting
    if (!all && origin === 'default') continue
    if (!hasText(search, key, env, description)) continue
    const list = groups.get(group) ?? []
    list.push(setting)
    groups.set(group, list)
  }
  return [...groups]
}

const COLUMNS: readonly Column<Setting>[] = [
  {
    title: 'Setting',
    width: '45%',
    cell: ({ key, env, documentation, description }) => (
      <>
        <a href={documentation} title={key} rel="noreferrer" target="_blank">
          <code>{env}</code>
        </a>
        <small class="muted description">
          <InlineCode text={description} />
        </small>
      </>
    ),
  },
  { title: 'Value', width: '22%', cell: ({ value }) => <Value value={value} /> },
  {
    title: 'Source',
    width: '19%',
    cell: ({ origin, origin_detail: detail }) =>
      origin === 'default' ? (
        <span class="muted">default</span>
      ) : (
        <strong class="source">
          <UserText>{detail}</UserText>
        </strong>
      ),
  },
  {
    title: 'Default',
    width: '14%',
    wideOnly: true,
    cell: ({ default: normal }) => (
      <span class="muted">
        <Value value={normal} />
      </span>
    ),
  },
]

function Value({ value }: { readonly value: Setting['value'] }) {
  const text = Array.isArray(value) ? value.join(', ') : String(value)
  if (text === '') return <span class="muted">empty</span>
  return <UserCode max={500}>{text}</UserCode>
}
