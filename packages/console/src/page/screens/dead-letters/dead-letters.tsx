import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function DeadLetters() {
  return (
    <Page title="Dead letters">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}
