import { useLayoutEffect } from 'preact/hooks'

import { Store } from '../api/store.ts'
import { go } from '../router/location.ts'
import type { Screen } from '../screens/screens.ts'
import { SCREENS } from '../screens/screens.ts'

/** `true` while the list of keys is shown. */
export const keyHelp = new Store(false)

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
