import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Live() {
  return (
    <Page title="Live tail">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}
