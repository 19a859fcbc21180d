import { resolve } from 'node:path'
import { readConfig } from '../../host/config.ts'
import { fileGiven } from '../backup-file.ts'
import type { Command } from '../command.ts'
import { when } from '../when.ts'

export default {
	description: 'Restore a home folder from a backup, by file or id; the gateway must not run',
	arguments: '<file>',
	options: {
		'--home <folder>': 'where to restore it. Default: the home of SVC_HOME, or ~/.svc',
		'--force': 'restore even if the home is not empty; its content is moved aside',
	},
	examples: `
The whole backup is checked before the home is changed. The previous content of the home is moved to a folder beside it, named
<home>.before-restore-<time>. The restore brings back everything that was revoked or deleted after the backup was created, including
tokens and grants, and the values that secrets had then. If it is interrupted, the next start of the gateway, or "svc restore",
completes it.

Examples:
  svc restore svc-backup-20300131T120000123Z.tar.gz --home /srv/svc
  svc restore 20300131T120000123Z --force
  svc restore ~/.svc/backups/svc-backup-20300131T120000123Z.tar.gz --force
`,
	async run(cli, { file, home = cli.home, force = false }: { file: string; home?: string; force?: boolean }) {
		const { restoreBackup } = await import('../../backup/restore.ts')
		using progress = cli.out.progress('Restoring: reading the backup')
		let isElsewhere = false
		const restored = await restoreBackup({
			file: fileGiven(cli, file),
			home: resolve(cli.cwd, home),
			force,
			storeOf(folder) {
				const { store } = readConfig({ home: folder, env: cli.env })
				isElsewhere = store.url !== null
				return store.path
			},
			step: (what) => progress.update(`Restoring: ${what}`),
			signal: cli.signal,
		})
		progress.done('Restored')
		const { manifest, aside, notes } = restored
		const { id, created_at, gateway_version, store, includes_key } = manifest
		const answer = { home: restored.home, id, created_at, gateway_version, ...store, includes_key, aside, notes }
		cli.out.answer(answer, (one, style) =>
			style.fields([
				['home', one.home],
				['as of', when(one.created_at)],
				['records', one.records],
				['runs to continue', one.jobs],
				['previous content', one.aside ?? 'none'],
			]),
		)
		for (const note of notes) cli.out.note(`Note: ${note}.`)
		if (isElsewhere)
			cli.out.note(
				'Note: the settings store the data elsewhere (store.url), where nothing was changed: remove store.url to use the restored data, or copy the data there with "svc migrate".',
			)
		cli.out.note(
			'Runs that were in progress continue at the next start; they may repeat what they did since the backup.',
		)
		cli.out.note(
			'Tokens, grants and approvals that were revoked since then are valid again: check them, and revoke them again.',
		)
	},
} satisfies Command
