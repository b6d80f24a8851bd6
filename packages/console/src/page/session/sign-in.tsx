import { useState } from 'preact/hooks'

import { useStore } from '../api/store.ts'
import { signIn, token } from './token.ts'

/** Asks for a token: the server requires one, or refused the present one. */
export function SignIn() {
  const refused = useStore(token) !== undefined
  const [value, setValue] = useState('')
  const submit = (event: Event): void => {
    event.preventDefault()
    const text = value.trim().replace(/^Bearer\s+/i, '')
    if (text !== '') signIn(text)
  }
  return (
    <form class="sign-in" onSubmit={submit}>
      <h1>Sign in</h1>
      <p>
        The server requires a token with the role ReadOnly, ReadWrite or Admin. The page keeps it until this tab is
        closed.
      </p>
      <label class="field">
        <span>Token</span>
        <input
          type="password"
          autocomplete="off"
          spellcheck={false}
          aria-invalid={refused}
          aria-describedby={refused ? 'sign-in-problem' : undefined}
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
      </label>
      {refused && (
        <p id="sign-in-problem" class="problem-text" role="alert">
          The server refused the token: it has expired, or another key signed it. Paste a new one.
        </p>
      )}
      <button type="submit" class="primary">
        Sign in
      </button>
    </form>
  )
}
