import { useLayoutEffect } from 'preact/hooks'

import { Store, useStore } from '../api/store.ts'
import { Dialog } from '../components/dialog.tsx'
import { go } from '../router/location.ts'
import { SCREENS } from '../screens/screens.ts'
import type { Screen } from '../screens/screens.ts'

/** `true` while the list of keys is shown. */
const keyHelp = new Store(false)

/** The time for the letter after `g`, in ms. */
const SEQUENCE_MS = 1_500

/** Handles `/`, `g` and a letter, and `?`, unless the operator writes into a field or a dialog is open. */
export function useShortcuts(): void {
  useLayoutEffect(() => {
    let goUntil = 0
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return
      if (document.querySelector('dialog[open]') !== null) return
      const going = event.timeStamp < goUntil
      goUntil = 0
      const screen = going ? SCREENS.find(({ key }) => key === event.key) : undefined
      if (screen !== undefined) open(screen)
      else if (event.key === 'g') goUntil = event.timeStamp + SEQUENCE_MS
      else if (event.key === '?') keyHelp.set(true)
      else if (event.key !== '/' || !focusSearch()) return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

/** Goes to a screen. The tabulator continues in its content, not in the navigation. */
function open({ id }: Screen): void {
  go([id])
  document.getElementById('main')?.focus({ preventScroll: true })
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>('main input[type="search"]')
  field?.focus()
  field?.select()
  return field !== null
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
}

/** The list of keys, opened with `?`. */
export function KeyHelp() {
  if (!useStore(keyHelp)) return null
  return (
    <Dialog title="Keys" onClose={() => keyHelp.set(false)}>
      <dl class="keys">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Search in this screen</dd>
        {SCREENS.map(({ id, key, title }) => (
          <>
            <dt key={id}>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{title}</dd>
          </>
        ))}
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>Close a dialog</dd>
      </dl>
    </Dialog>
  )
}
