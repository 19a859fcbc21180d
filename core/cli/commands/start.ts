import { CliError, exitCodes } from '../contract.ts'
import type { Command } from '../command.ts'
import type { ExitName } from '../contract.ts'

export default {
	description:
		'Start the gateway in this terminal, as npm start does. Ctrl-C ends it; a second Ctrl-C ends it at once.',
	options: { '--no-backup': 'create no backup before data of an older version is upgraded' },
	examples: `
Exit code: 78 if gateway.yaml contains an error, 69 if the gateway cannot start.

Examples:
  svc start
  SVC_PORT=8080 svc start
  SVC_HOME=~/another svc start`,
	async run(cli, { backup = true }: { backup?: boolean }) {
		const { gatewayFlags, pinnedNode, replaceBy } = await import('../../process/handover.mjs')
		const { runnable } = await import('../launch/bundle.mjs')
		// A relative SVC_HOME is relative to the user's working directory.
		const code = await replaceBy(
			pinnedNode(),
			[...gatewayFlags, await runnable('core/main.ts'), ...(backup ? [] : ['--no-backup'])],
			{ cwd: cli.cwd },
		)
		if (code !== 0) throw new CliError(meanings[code] ?? 'failed', '')
	},
} satisfies Command

/** The exit codes of the gateway, which has already printed its error. */
const meanings: Record<number, ExitName> = { [exitCodes.config]: 'config', [exitCodes.unavailable]: 'unavailable' }
