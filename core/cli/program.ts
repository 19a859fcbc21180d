/** Commander's program: every command of `svc`, of which only the wanted one is loaded. */
import { Command, CommanderError } from 'commander'
import type { Cli, Register } from './contract.ts'
import type { Sink } from './output.ts'
import { version } from './version.ts'

export { CommanderError }

interface Listed {
	/** What `svc --help` shows; its own help may say more. */
	summary: string
	load(): Promise<{ register: Register }>
}

/** In the order in which help shows them. */
const commands: Record<string, Record<string, Listed>> = {
	'Gateway:': {
		init: {
			summary: 'Set up the home folder and a model provider',
			load: () => import('./commands/init.ts'),
		},
		start: { summary: 'Start the gateway in this terminal', load: () => import('./commands/start.ts') },
		status: { summary: 'Show how the gateway is and what it does', load: () => import('./commands/status.ts') },
		doctor: { summary: 'Look for what is wrong and say how to mend it', load: () => import('./commands/doctor.ts') },
		config: { summary: 'Check, explain and change the settings', load: () => import('./commands/config.ts') },
		plugins: { summary: 'Show the plugins and what is wrong with them', load: () => import('./commands/plugins.ts') },
		backup: { summary: 'Take, list, verify and remove backups', load: () => import('./commands/backup.ts') },
		restore: { summary: 'Bring a home folder back from a backup', load: () => import('./commands/restore.ts') },
	},
	'Agents at work:': {
		agents: { summary: 'Create, list, change and delete agents', load: () => import('./commands/agents.ts') },
		run: { summary: 'Give an agent a prompt and follow its answer', load: () => import('./commands/run.ts') },
		chat: { summary: 'Talk with an agent', load: () => import('./commands/chat.ts') },
		runs: { summary: 'List, read, follow and cancel runs', load: () => import('./commands/runs.ts') },
		questions: { summary: 'List and answer what agents ask', load: () => import('./commands/questions.ts') },
		events: { summary: 'Follow events as they happen', load: () => import('./commands/events.ts') },
		audit: { summary: 'Read past events', load: () => import('./commands/audit.ts') },
	},
	'What agents can do:': {
		skills: { summary: 'Install, review and approve skills', load: () => import('./commands/skills.ts') },
		memory: { summary: 'Search and compact long-term memory', load: () => import('./commands/memory.ts') },
		mcp: { summary: 'Give agents tools of MCP servers', load: () => import('./commands/mcp.ts') },
		heartbeats: { summary: 'Start runs by the clock', load: () => import('./commands/heartbeats.ts') },
		webhooks: { summary: 'Let other services start runs', load: () => import('./commands/webhooks.ts') },
		channels: { summary: 'Reach agents by Telegram, Discord and others', load: () => import('./commands/channels.ts') },
	},
	'Access:': {
		tokens: { summary: 'Create, list and revoke API tokens', load: () => import('./commands/tokens.ts') },
		vault: { summary: 'Keep secrets', load: () => import('./commands/vault.ts') },
		grants: { summary: 'Say which agent may use which secret', load: () => import('./commands/grants.ts') },
	},
	'Shell:': {
		completion: { summary: 'Complete commands with the tab key', load: () => import('./commands/completion.ts') },
	},
}

export interface ProgramOptions {
	stdout: Sink
	stderr: Sink
	/** Makes what commands are given, once the program's options can be read. */
	cli(options: { json(): boolean; quiet(): boolean }): Cli
}

/** `argv` as the user wrote it, without node and file. `all`: every command is loaded, for completion. */
export async function buildProgram(
	argv: readonly string[],
	{ stdout, stderr, cli }: ProgramOptions,
	all = false,
): Promise<Command> {
	const program = new Command('svc')
		.description('Runs and uses a gateway for agents.')
		.option('--json', 'answer with JSON; streams with a document a line')
		.option('--quiet', 'say nothing but the answer')
		.optionsGroup('Everywhere:')
		.version(version(), '--version', 'show the version')
		.helpOption('-h, --help', 'show help')
		.helpCommand('help [command]', 'show help')
		.exitOverride()
		.configureHelp({ showGlobalOptions: true, sortSubcommands: false })
		.configureOutput({
			writeOut: (text) => void stdout.write(text),
			writeErr: (text) => void stderr.write(text),
			// Told by whoever called, in the same form as all errors.
			outputError: () => {},
			getOutHelpWidth: () => stdout.columns || 80,
			getErrHelpWidth: () => stderr.columns || 80,
		})
		.addHelpText(
			'after',
			'\n"svc <command> --help" shows examples. SVC_URL and SVC_TOKEN say which gateway, SVC_HOME which home.',
		)
	const given = cli({ json: () => program.opts().json === true, quiet: () => program.opts().quiet === true })
	const wanted = wantedCommand(argv)
	for (const [group, entries] of Object.entries(commands)) {
		for (const [name, { summary, load }] of Object.entries(entries)) {
			if (all || name === wanted) (await load()).register(program, given)
			else program.command(name)
			program.commands.at(-1)?.summary(summary).helpGroup(group)
		}
	}
	return program
}

/** The first word that is no option; behind `help` the second. Options in front of it take no values. */
function wantedCommand(argv: readonly string[]): string | undefined {
	const words = argv.filter((word) => !word.startsWith('-'))
	return words[0] === 'help' ? words[1] : words[0]
}
