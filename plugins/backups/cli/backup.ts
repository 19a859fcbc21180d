import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { readConfig } from '../../../core/host/config.ts'
import type { BackupInfo, BackupListing } from '../../../core/backup/list.ts'
import { holderOf } from '../../../core/process/lock.ts'
import { fileGiven, folderOf } from '../../../core/cli/backup-file.ts'
import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { tableOf } from '../../../core/cli/lists.ts'
import { when } from '../../../core/cli/when.ts'
import { sizeText } from '../../shared/size-text.ts'

type ShownBackup = Omit<BackupInfo, 'origin'>

interface Listing extends Pick<BackupListing, 'unreadable'> {
	backups: ShownBackup[]
	folder: string
	next_at: string | null
}

export default {
	examples: `
A backup contains agents, runs, events, memories, secrets and everything else that the gateway stores, with gateway.yaml, plugins/ and
skills/ of the home, and the key of the vault unless backups.include_key is false. "svc restore" restores it.

Examples:
  svc backup create
  svc backup list
  svc backup verify svc-backup-20300131T120000123Z.tar.gz
  svc backup remove 20300131T120000123Z --yes
`,
	commands: {
		create: {
			description: 'Take a backup of a running gateway, or of a home that is not in use',
			async run(cli) {
				using progress = cli.out.progress('Taking a backup')
				const made = (await isOffline(cli))
					? await offline(cli)
					: await cli.api.request<ShownBackup>('POST', '/v1/backups', undefined, { patient: true })
				progress.done('Took a backup and verified it')
				cli.out.answer(made, (one, style) =>
					style.fields([
						['backup', one.id],
						['file', one.file],
						['size', sizeText(one.bytes)],
						['records', one.records],
						['key of the vault', one.includes_key ? 'included' : 'not included'],
					]),
				)
				for (const left of made.left_out) cli.out.note(`Not included: ${left}`)
				cli.out.note(keyNote(made))
			},
		},
		list: {
			description: 'List the backups in the folder of the settings, oldest first',
			async run(cli) {
				const listing = (await isOffline(cli))
					? await listOffline(cli)
					: await cli.api.request<Listing>('GET', '/v1/backups')
				cli.out.answer(listing, ({ backups }, style) =>
					tableOf(backups, style, 'No backups yet. Take one: svc backup create', (one) => ({
						id: one.id,
						made: when(one.created_at),
						by: one.trigger,
						size: sizeText(one.bytes),
						records: one.records,
						version: one.gateway_version,
						key: one.includes_key ? 'yes' : 'no',
					})),
				)
				for (const { file, message } of listing.unreadable) cli.out.note(`${file}: ${message}`)
				cli.out.note(
					`Folder: ${listing.folder}.${listing.next_at ? ` The next backup is due ${when(listing.next_at)}.` : ''}`,
				)
			},
		},
		verify: {
			description: 'Read a whole backup, by file or id, and check its database as a restore does',
			arguments: '<file>',
			async run(cli, { file: given }: { file: string }) {
				const { verifyBackup } = await import('../../../core/backup/verify.ts')
				const file = fileGiven(cli, given)
				using progress = cli.out.progress(`Verifying ${basename(file)}`)
				const { manifest, bytes } = await verifyBackup(file, cli.signal)
				progress.done('The backup is intact')
				const { id, created_at, gateway_version, store, members, includes_key } = manifest
				const found = { id, file, bytes, created_at, gateway_version, ...store, files: members.length, includes_key }
				cli.out.answer(found, (one, style) =>
					style.fields([
						['backup', one.id],
						['made', `${when(one.created_at)} by version ${style.plain(one.gateway_version)}`],
						['size', sizeText(one.bytes)],
						['files', one.files],
						['records', one.records],
						['key of the vault', one.includes_key ? 'included' : 'not included'],
					]),
				)
			},
		},
		remove: {
			description: 'Remove a backup',
			arguments: '<id>',
			options: yesOption,
			async run(cli, { id, ...options }: { id: string; yes?: boolean }) {
				await consent(cli, options, `Remove the backup ${id}?`)
				if (await isOffline(cli)) await (await import('../../../core/backup/list.ts')).removeBackup(folderOf(cli), id)
				else await cli.api.request('DELETE', path`/v1/backups/${id}`)
				cli.out.answer({ id, removed: true }, () => `Removed ${id}.`)
			},
		},
	},
} satisfies Command

/** True if no gateway is named and the home's gateway does not run: then the command reads the home itself. */
async function isOffline({ env, home }: Cli): Promise<boolean> {
	if (env.SVC_URL) return false
	if (!existsSync(home))
		throw new CliError('not_found', `there is no home ${home}; set SVC_HOME to one, or SVC_URL to a gateway`)
	return (await holderOf(home)) === null
}

async function offline({ env, home, signal }: Cli): Promise<ShownBackup> {
	const { createOffline } = await import('../../../core/backup/offline.ts')
	const { store, backups } = readConfig({ home, env })
	if (store.url !== null)
		throw new CliError(
			'unavailable',
			'the data is in a cluster (store.url): copy it with the tools of NATS ("nats stream backup")',
		)
	const { origin: _origin, ...made } = await createOffline({
		home,
		store: store.path,
		folder: backups.folder,
		include_key: backups.include_key,
		min_free_mib: store.min_free_mib,
		signal,
	}).catch((error: unknown) => {
		signal.throwIfAborted() // Ctrl-C is not a failure
		throw error
	})
	return made
}

async function listOffline(cli: Cli): Promise<Listing> {
	const { listBackups } = await import('../../../core/backup/list.ts')
	const folder = folderOf(cli)
	const { backups, unreadable } = await listBackups(folder)
	return { backups: backups.map(({ origin: _origin, ...one }) => one), unreadable, folder, next_at: null }
}

function keyNote({ includes_key }: ShownBackup): string {
	if (includes_key)
		return "The backup contains the vault's key: anyone who has the file can read every secret. Protect it like the gateway's home."
	return "The backup does not contain the vault's key: keep the key elsewhere, or the secrets of this backup are lost."
}
