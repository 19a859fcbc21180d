import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { sizeText } from '../../../shared/size-text.ts'
import { change, get, path } from '../api.ts'
import { count, when } from '../format.ts'
import { empty, Page, table } from '../page.ts'

interface Backup {
	id: string
	file: string
	bytes: number
	created_at: string
	trigger: 'request' | 'schedule'
	gateway_version: string
	records: number
	includes_key: boolean
	left_out: string[]
}

interface Backups {
	/** Oldest first. */
	backups: Backup[]
	unreadable: { id: string; file: string; message: string }[]
	folder: string
	next_at: string | null
}

/** Backups, newest first. */
class BackupList extends Page {
	#found: Backups | undefined

	async enter(): Promise<void> {
		this.#found = await get<Backups>('/v1/backups', this.signal)
	}

	protected content(): TemplateResult {
		if (!this.#found) return html`<h1>Backups</h1>`
		const { backups, unreadable, folder, next_at } = this.#found
		return html`
			<h1>Backups</h1>
			<p class="note">
				In <code>${folder}</code> on the gateway's machine.
				${next_at === null ? 'There is no schedule (backups.schedule).' : html`The next one is taken at ${when(next_at)}.`}
				To restore one, stop the gateway and run <code>svc restore FILE</code>.
			</p>
			<p>
				<button class="primary" ?disabled=${this.busy !== ''} @click=${() => this.#take()}>
					${this.busy !== '' ? 'Taking a backup …' : 'Take a backup'}
				</button>
			</p>
			${unreadable.map(({ file, message }) => html`<p class="problem"><code>${file}</code> ${message}</p>`)}
			${table(
				['Taken', 'By', 'Size', 'Records', 'Version', ['File', 'wide'], ''],
				backups.toReversed().map((backup) => this.#row(backup)),
				empty('There is no backup yet.'),
			)}
		`
	}

	#row({ id, file, bytes, created_at, trigger, gateway_version, records, includes_key, left_out }: Backup): unknown[] {
		const name = `Delete the backup ${id}`
		return [
			when(created_at),
			trigger,
			sizeText(bytes),
			count(records),
			gateway_version,
			html`<code>${file}</code> ${includes_key ? html`<span class="chip">contains the vault's key</span>` : nothing}
				${left_out.length === 0 ? nothing : html`<p class="note lines">Not included: ${left_out.join('\n')}</p>`}`,
			this.deleteButton('Delete', `${name}?`, path`/v1/backups/${id}`, { name }),
		]
	}

	#take(): void {
		this.attemptBusy('taking', async () => {
			await change('POST', '/v1/backups', {})
			await this.enter()
		})
	}
}

customElements.define('svc-backups', BackupList)
