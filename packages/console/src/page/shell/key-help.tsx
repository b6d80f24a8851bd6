import { useStore } from '../api/store.ts'
import { Dialog } from '../components/dialog.tsx'
import { SCREENS } from '../screens/screens.ts'
import { keyHelp } from './shortcuts.ts'

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
