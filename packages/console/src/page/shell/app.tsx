import type { FunctionComponent } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'

import { connection, useStore } from '../api/store.ts'
import { Loading, Problem, Toasts } from '../components/page.tsx'
import { usePlace } from '../router/location.ts'
import { SCREENS } from '../screens/screens.ts'
import type { Screen, ScreenProps } from '../screens/screens.ts'
import { SignIn } from '../session/sign-in.tsx'
import { signedOut, token } from '../session/token.ts'
import { Navigation } from './navigation.tsx'
import { KeyHelp, useShortcuts } from './shortcuts.tsx'

const [FIRST] = SCREENS

/** The page: navigation, the screen of the present place, and what lies above all screens. */
export function App() {
  const place = usePlace()
  const asksForToken = useStore(signedOut)
  // What the operator typed before the token expired is there again after the sign-in.
  const isKept = useStore(token) !== undefined
  useShortcuts()
  const screen = SCREENS.find(({ id }) => id === place.path[0]) ?? FIRST
  useLayoutEffect(() => {
    if (screen !== undefined) document.title = `${screen.title} · Signalbox`
  }, [screen])
  if (screen === undefined) return null
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to content
      </a>
      <div class="shell">
        <Navigation current={screen} />
        <main id="main" tabIndex={-1}>
          <ConnectionBanner />
          {asksForToken && <SignIn />}
          {(isKept || !asksForToken) && (
            <div hidden={asksForToken}>
              <ScreenView key={screen.id} screen={screen} place={place} />
            </div>
          )}
        </main>
      </div>
      <KeyHelp />
      <Toasts />
    </>
  )
}

function skip(event: Event): void {
  event.preventDefault()
  document.getElementById('main')?.focus()
}

type Component = FunctionComponent<ScreenProps>

const loaded = new Map<string, Component>()

function ScreenView({ screen, place }: ScreenProps & { readonly screen: Screen }) {
  const [Current, setCurrent] = useState<Component | undefined>(() => loaded.get(screen.id))
  const [failed, setFailed] = useState(false)
  useEffect(() => {
    if (loaded.has(screen.id)) return
    screen.load().then(
      (component) => {
        loaded.set(screen.id, component)
        setCurrent(() => component)
      },
      () => setFailed(true),
    )
  }, [screen])
  if (failed)
    return <Problem>This screen cannot be loaded. The server may have been updated: load the page again.</Problem>
  return Current === undefined ? <Loading /> : <Current place={place} />
}

/** Says that the server does not answer. Screens keep their last data, and repeat their requests. */
function ConnectionBanner() {
  const state = useStore(connection)
  return (
    <div role="status" aria-live="polite">
      {state === 'lost' && (
        <p class="banner">
          <strong>Connection lost.</strong> The figures are the last known ones. The page tries again every 2 seconds.
        </p>
      )}
      {state === 'starting' && (
        <p class="banner">
          <strong>The server is starting or stopping.</strong> The page tries again every 2 seconds.
        </p>
      )}
    </div>
  )
}
