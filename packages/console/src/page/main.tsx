import { render } from 'preact'

import './style/base.css'
import './style/shell.css'
import './style/components.css'
import './style/screens.css'
import { finishSignIn } from './session/oauth.ts'
import { App } from './shell/app.tsx'

const root = document.getElementById('app')
if (root !== null) void finishSignIn().finally(() => render(<App />, root))
