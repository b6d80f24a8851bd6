import { connection } from '../api/connection.ts'
import { useStore } from '../api/store.ts'

/** Says that the server does not answer. Screens keep their last data, and repeat their requests. */
export function ConnectionBanner() {
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
