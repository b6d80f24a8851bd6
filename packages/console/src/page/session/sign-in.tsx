import { useEffect, useRef, useState } from 'preact/hooks'

import type { GetData } from '../api/client.ts'
import { useStore } from '../api/store.ts'
import { useRoute } from '../api/use-data.ts'
import { UserText } from '../components/values.tsx'
import { beginSignIn, canUseProvider, signInProblem } from './oauth.ts'
import { signIn } from './session.ts'
import { token } from './token.ts'

/** The time between two attempts to reach the identity provider, in ms. */
const RETRY_MS = 5_000

/** Asks for a token: the server requires one, or refused the present one. */
export function SignIn() {
  const refused = useStore(token) !== undefined
  const problem = useStore(signInProblem)
  const { data } = useRoute('/api/sign_in', {}, RETRY_MS)
  const [value, setValue] = useState('')
  const field = useRef<HTMLInputElement>(null)
  // The field that had the focus is hidden now.
  useEffect(() => {
    if (refused) field.current?.focus()
  }, [refused])
  const submit = (event: Event): void => {
    event.preventDefault()
    const text = value.trim().replace(/^Bearer\s+/i, '')
    if (text === '') return
    signInProblem.set(undefined)
    signIn(text)
  }
  const expired = refused && problem === undefined
  return (
    <form class="sign-in" onSubmit={submit}>
      <h1>Sign in</h1>
      <p>
        The server requires a token with the role ReadOnly, ReadWrite or Admin. The page keeps it until this tab is
        closed.
      </p>
      {problem !== undefined && (
        <p class="problem-text" role="alert">
          {problem}
        </p>
      )}
      {expired && data?.provider && (
        <p class="problem-text" role="alert">
          The session has expired, or the server refused the token. Sign in again.
        </p>
      )}
      {data?.provider && <ProviderButton issuer={data.provider} oauth={data.oauth} />}
      <label class="field">
        <span>Token</span>
        <input
          ref={field}
          type="password"
          autocomplete="off"
          spellcheck={false}
          aria-invalid={refused}
          aria-describedby={expired && !data?.provider ? 'sign-in-problem' : undefined}
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
      </label>
      {expired && !data?.provider && (
        <p id="sign-in-problem" class="problem-text" role="alert">
          The server refused the token: it has expired, or another key signed it. Paste a new one.
        </p>
      )}
      <button type="submit" class={data?.provider ? undefined : 'primary'}>
        {data?.provider ? 'Sign in with the token' : 'Sign in'}
      </button>
    </form>
  )
}

interface ProviderButtonProps {
  readonly issuer: string
  /** Null while the server cannot read the metadata of the provider. */
  readonly oauth: GetData<'/api/sign_in'>['oauth']
}

/** Leads to the login page of the identity provider. */
function ProviderButton({ issuer, oauth }: ProviderButtonProps) {
  const { host } = new URL(issuer)
  if (!canUseProvider)
    return (
      <p class="problem-text">
        Browsers allow signing in with <UserText>{host}</UserText> only over HTTPS or on localhost.
      </p>
    )
  if (oauth === null)
    return (
      <p class="problem-text" role="status">
        The server cannot read the metadata of <UserText>{issuer}</UserText>. Its log has the reason.
      </p>
    )
  const begin = (): void =>
    void beginSignIn({
      issuer,
      authorizationEndpoint: oauth.authorization_endpoint,
      tokenEndpoint: oauth.token_endpoint,
      clientId: oauth.client_id,
      scopes: oauth.scopes,
      resource: oauth.resource,
    })
  return (
    <button type="button" class="primary" onClick={begin}>
      Sign in with <UserText>{host}</UserText>
    </button>
  )
}
