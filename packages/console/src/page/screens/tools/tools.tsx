import { useRoute } from '../../api/use-data.ts'
import { Empty, Page, Reading } from '../../components/page.tsx'
import { Search } from '../../components/controls.tsx'
import { hasText, plural, UserText } from '../../components/values.tsx'
import { href } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { Tool } from './tool.tsx'
import './tools.css'

/** The tools of `/mcp`; the place `tools/NAME` is one of them. */
export function Tools({ place }: ScreenProps) {
  const [, name] = place.path
  const { search = '' } = place.query
  const { data, error, loading } = useRoute('/api/tools', {})
  const tools = data?.items ?? []
  const shown = tools.filter((tool) => hasText(search, `${tool.name} ${tool.title}`))
  const tool = tools.find((one) => one.name === name)
  return (
    <Page
      title="Tools"
      note={data && `${plural(tools.length, 'tool')} of /mcp`}
      actions={<Search label="Find a tool" />}
    >
      <Reading of={{ error, loading }} />
      {data && tools.length === 0 && <Empty>The server has no tools: /mcp is turned off.</Empty>}
      {tools.length > 0 && (
        <div class={tool === undefined ? 'split' : 'split split-open'}>
          <nav class="split-list" aria-label="Tools">
            {shown.length === 0 && <Empty>No tool has this text in its name.</Empty>}
            <ul>
              {shown.map((one) => (
                <li key={one.name}>
                  <a href={href(['tools', one.name], place.query)} aria-current={one === tool ? 'true' : undefined}>
                    <code>{one.name}</code>
                    <small>{one.title}</small>
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          {tool !== undefined && <Tool key={tool.name} tool={tool} />}
          {tool === undefined && name !== undefined && (
            <Empty>
              There is no tool with the name <UserText>{name}</UserText>.
            </Empty>
          )}
          {name === undefined && <Empty>Choose a tool to see its arguments and to call it.</Empty>}
        </div>
      )}
    </Page>
  )
}
