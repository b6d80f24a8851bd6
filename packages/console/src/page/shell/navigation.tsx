import { useEffect, useState } from 'preact/hooks'

import { useStore } from '../api/store.ts'
import { useRoute } from '../api/use-data.ts'
import { NodeHealth } from '../components/values.tsx'
import { href, usePlace } from '../router/location.ts'
import type { Screen } from '../screens/screens.ts'
import { SCREENS } from '../screens/screens.ts'
import { signOut } from '../session/session.ts'
import { token } from '../session/token.ts'

const GROUPS = [...new Set(SCREENS.map(({ group }) => group))]

/** The list of screens, and the state of the node. On narrow screens a button opens it. */
export function Navigation({ current }: { readonly current: Screen }) {
  const [open, setOpen] = useState(false)
  const place = usePlace()
  useEffect(() => setOpen(false), [place])
  return (
    <header class={open ? 'side side-open' : 'side'}>
      <div class="brand">
        <a href={href([])}>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="7" />
            <path d="M9 25V7M9 9h11l4 4.5-4 4.5H9" />
          </svg>
          Signalbox
        </a>
        <button
          type="button"
          class="quiet menu"
          aria-expanded={open}
          aria-controls="navigation"
          onClick={() => setOpen(!open)}
        >
          Menu
        </button>
      </div>
      <nav id="navigation" aria-label="Screens">
        {GROUPS.map((group) => (
          <section key={group} aria-labelledby={`group-${group}`}>
            <h2 id={`group-${group}`}>{group}</h2>
            <ul>
              {SCREENS.filter((screen) => screen.group === group).map(({ id, title, key }) => (
                <li key={id}>
                  <a
                    href={href([id])}
                    aria-current={id === current.id ? 'page' : undefined}
                    aria-keyshortcuts={`g ${key}`}
                  >
                    {title}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </nav>
      <NodeState />
    </header>
  )
}

function NodeState() {
  const { data } = useRoute('/api/snapshot', {}, 5_000)
  const bearer = useStore(token)
  const [node] = data?.nodes ?? []
  return (
    <div class="node-state">
      {node !== undefined && (
        <>
          <NodeHealth ready={node.ready} healthy={node.healthy} />
          <span class="node" title={`${node.node}, ${node.engine} engine`}>
            {node.node}
          </span>
          <span class="muted">{node.version}</span>
        </>
      )}
      {bearer !== undefined && (
        <button type="button" class="quiet" onClick={signOut}>
          Sign out
        </button>
      )}
    </div>
  )
}
