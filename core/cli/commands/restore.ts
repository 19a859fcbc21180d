import { resolve } from 'node:path'
import { readConfig } from '../../host/config.ts'
import { fileGiven } from '../backup-file.ts'
import type { Command } from '../command.ts'
import { when } from '../when.ts'

export default {
	description: 'Bring a home folder back from a backup, a file or an id; the gateway must not run',
	arguments: '<file>',
	options: {
		'--home <folder>': 'where to; left out: the home that SVC_HOME names, or ~/.svc',
		'--force': 'also where the home holds something, which is kept aside',
	},
	examples: `
All of the backup is checked before the home is touched. What the home held is moved to a folder beside it, named
<home>.before-restore-<time>. Whatever was revoked or deleted after the backup was made is back, tokens and grants among
it; secrets have the values that they had then. Where the restore is interrupted, the next start of the gateway, or "svc restore", ends it.

Examples:
  svc restore svc-backup-20300131T120000123Z.tar.gz --home /srv/svc
  svc restore 20300131T120000123Z --force
  svc restore ~/.svc/backups/svc-backup-20300131T120000123Z.tar.gz --force
`,
	async run(cli, { file, home = cli.home, force = false }: { file: string; home?: string; force?: boolean }) {
		const { restoreBackup } = await import('../../backup/restore.ts')
		using progress = cli.out.progress('Restoring: reading the backup')
		const restored = await restoreBackup({
			file: fileGiven(cli, file),
			home: resolve(cli.cwd, home),
			force,
			storeOf: (folder) => readConfig({ home: folder, env: cli.env }).store.path,
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
				['what was there', one.aside ?? 'nothing'],
			]),
		)
		for (const note of notes) cli.out.note(`Note: ${note}.`)
		if (readConfig({ home: restored.home, env: cli.env }).store.url !== null)
			cli.out.note(
				'Note: the settings name a cluster (store.url), which was not changed: remove store.url to use what was restored, or copy it there with "svc migrate".',
			)
		cli.out.note(
			'Runs that were in progress continue at the next start; what they did since the backup may be done again.',
		)
		cli.out.note(
			'Tokens, grants and approvals that were revoked since then are valid again: check them, and revoke them again.',
		)
	},
} satisfies Command
