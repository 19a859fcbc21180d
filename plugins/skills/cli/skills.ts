import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { answerList } from '../../../core/cli/lists.ts'
import { pick } from '../../../core/cli/pick.ts'
import { fileLines, fileText, reviewText } from './review-text.ts'
import { requestFor } from './source.ts'
import type { FileContent, Skill, SkillReview } from '../contract.ts'
import { DOCUMENT } from '../folder/contract.ts'
import { digestOfListing, sha256 } from '../folder/digest.ts'
import { when } from '../../../core/cli/when.ts'

interface Approval {
	digest?: string
	yes?: boolean
	full?: boolean
}

export default {
	examples: `
A skill does nothing until it is approved. A scan without findings does not mean that it is safe: read it.

Examples:
  svc skills install ada ./weather          a folder with a SKILL.md and other files
  svc skills install ada weather.zip
  svc skills install ada https://skills.example.com/weather/SKILL.md
  svc skills install ada https://github.com/example/skills/tree/main/skills/weather
  svc skills install ada ./collection --all
  svc skills review ada weather
  svc skills show ada weather references/api.md
  svc skills approve ada weather            shows the skill, and asks
  svc skills approve ada weather --digest "sha256:$(sha256sum < SKILL.md | cut -d' ' -f1)"
  svc skills remove ada weather`,
	commands: {
		list: {
			description: 'List the skills of an agent or of all agents',
			arguments: '[agent]',
			run: (cli, { agent }: { agent?: string }) =>
				answerList(cli, agent, {
					of: (name) => listed(cli, name),
					empty: (name) => `No skills yet. Install one: svc skills install ${name} FOLDER`,
					row: (one) => ({
						skill: one.name,
						status: one.status,
						id: one.id,
						installed: when(one.installed_at),
						description: one.description,
					}),
				}),
		},
		install: {
			description:
				'Install a skill into quarantine from a folder, a SKILL.md, a .zip or .tar.gz, an address of one of these or of a folder at a Git host, or standard input (-)',
			arguments: '<agent> <source>',
			options: {
				'--path <folder>': 'the folder of the skill, if the source contains several skills',
				'--all': 'install all skills of the source',
			},
			async run(cli, { agent, source, path: folder, all = false }: { agent: string; source: string } & Selection) {
				const installed: Skill[] = []
				try {
					installed.push(await install(cli, agent, source, folder))
				} catch (error) {
					if (!(error instanceof CliError) || error.code !== 'skill_ambiguous') throw error
					if (!all) throw severalIn(source, error)
					for (const { path: one } of error.errors) installed.push(await install(cli, agent, source, one))
				}
				cli.out.answer(all ? installed : installed[0], (_, style) =>
					installed
						.map(({ name, id }) => `Installed ${style.bold(style.plain(name))} into quarantine.\n  id: ${id}`)
						.join('\n'),
				)
				cli.out.note(
					installed.length > 1
						? `No run can use them yet. Review each: svc skills approve ${agent} SKILL`
						: `No run can use it yet. Review it: svc skills review ${agent} ${installed[0]?.id ?? ''}`,
				)
			},
		},
		show: {
			description: 'List the files of a skill, or print one of them',
			arguments: '<agent> <skill> [file]',
			async run(cli, { agent, skill: wanted, file }: { agent: string; skill: string; file?: string }) {
				const review = await reviewOf(cli, agent, wanted)
				if (file === undefined) {
					const { id, name, digest, files } = review
					cli.out.answer({ id, name, digest, files }, (_, style) => fileLines(review, style).join('\n'))
					return
				}
				const content = await contentOf(cli, agent, review.id, file)
				cli.out.answer(content, ({ path: name, size, text }, style) =>
					text === undefined ? `${style.plain(name)} is not text (${size} bytes).` : fileText(text, style),
				)
			},
		},
		review: {
			description: 'Show the permissions of a skill, the findings of a scan, and its document or changes',
			arguments: '<agent> <skill>',
			options: {
				'--full': 'the complete text of all files, even if there is an active revision to compare it with',
			},
			async run(cli, { agent, skill: wanted, full = false }: { agent: string; skill: string; full?: boolean }) {
				const review = await reviewOf(cli, agent, wanted)
				const texts = full ? await textsOf(cli, agent, review) : ''
				cli.out.answer(review, (one, style) => reviewText(one, style, full) + texts)
				if (review.status === 'quarantined')
					cli.out.note(
						`To approve what you see: svc skills approve ${agent} ${review.id} --digest sha256:${review.digest}`,
					)
			},
		},
		approve: {
			description: 'Show a skill, ask, and approve exactly what was shown',
			arguments: '<agent> <skill>',
			options: {
				'--digest <sha256>': 'approve without asking if the skill still has this digest',
				'--full': 'show the complete text of all files, not only the document or the changes',
				...yesOption,
			},
			async run(cli, { agent, skill: wanted, ...options }: { agent: string; skill: string } & Approval) {
				const review = await reviewOf(cli, agent, wanted)
				const digest = await consented(cli, review, agent, options)
				const approved = await cli.api.request<Skill>('POST', path`/v1/agents/${agent}/skills/${review.id}/approve`, {
					digest,
				})
				cli.out.answer(
					approved,
					({ name }, style) => `Approved ${style.bold(style.plain(name))}: runs of ${agent} can use it.`,
				)
			},
		},
		remove: {
			description: 'Remove a skill, by name or id; its calls in progress end',
			arguments: '<agent> <skill>',
			options: yesOption,
			async run(cli, { agent, skill: wanted, ...options }: { agent: string; skill: string; yes?: boolean }) {
				const { id, name, status } = found(await listed(cli, agent), wanted)
				await consent(cli, options, `Remove the ${status} skill ${name} (${id}) from ${agent}?`)
				await cli.api.request('DELETE', path`/v1/agents/${agent}/skills/${id}`)
				cli.out.answer({ id, status: 'removed' }, (_, style) => `Removed ${style.plain(name)}.`)
			},
		},
	},
} satisfies Command

interface Selection {
	path?: string
	all?: boolean
}

async function install(cli: Cli, agent: string, source: string, folder: string | undefined): Promise<Skill> {
	const { query, body } = await requestFor(cli, source, folder)
	return cli.api.request<Skill>('POST', path`/v1/agents/${agent}/skills/install` + query, body)
}

const NAMED_LIMIT = 50

/** The error for people, which names the options of the command instead of the fields of the request. */
function severalIn(source: string, error: CliError): CliError {
	const { exit, errors } = error
	const paths = errors.map((one) => one.path)
	const more = paths.length > NAMED_LIMIT ? ', …' : ''
	const choice = `select one with --path, or install all with --all: ${paths.slice(0, NAMED_LIMIT).join(', ')}${more}`
	const message = `${source} has several skills; ${choice}`
	return new CliError(exit, message, { code: 'skill_ambiguous', errors, cause: error })
}

function contentOf(cli: Cli, agent: string, id: string, file: string): Promise<FileContent> {
	const query = `?path=${encodeURIComponent(file)}`
	return cli.api.request<FileContent>('GET', path`/v1/agents/${agent}/skills/${id}/files` + query)
}

/** The texts of all text files except the document. Throws a `CliError` if one is not the file that the review lists. */
async function textsOf(cli: Cli, agent: string, { id, files }: SkillReview): Promise<string> {
	const parts: string[] = []
	for (const file of files) {
		if (file.path === DOCUMENT || file.kind === 'binary') continue
		const { text = '' } = await contentOf(cli, agent, id, file.path)
		if (sha256(text) !== file.sha256)
			throw new CliError('conflict', `${file.path} is not the file that the review lists; review the skill again`)
		parts.push(`\n\n${cli.out.style.bold(cli.out.style.plain(file.path))}\n${fileText(text, cli.out.style)}`)
	}
	return parts.join('')
}

function listed(cli: Cli, agent: string): Promise<Skill[]> {
	return cli.api.request<Skill[]>('GET', path`/v1/agents/${agent}/skills`)
}

/** Prefers the quarantined revision if a skill has several. */
async function reviewOf(cli: Cli, agent: string, wanted: string): Promise<SkillReview> {
	const list = await listed(cli, agent)
	const waiting = list.filter((one) => one.status === 'quarantined' && one.name === wanted)
	const { id } = found(waiting.length > 0 ? waiting : list, wanted)
	return cli.api.request<SkillReview>('GET', path`/v1/agents/${agent}/skills/${id}`)
}

/** The digest to approve: the one that the user gives, or that of the files that were shown and accepted. */
async function consented(
	cli: Cli,
	review: SkillReview,
	agent: string,
	{ digest, yes = false, full = false }: Approval,
): Promise<string> {
	if (digest !== undefined) {
		const named = digest.replace(/^sha256:/i, '').toLowerCase()
		if (!/^[0-9a-f]{64}$/.test(named))
			throw new CliError('usage', '--digest must be sha256: and 64 hex digits, as in the review')
		if (named === review.digest) return named
		throw new CliError(
			'conflict',
			`the document has changed to sha256:${review.digest}; review it again: svc skills review ${agent} ${review.id}`,
			{ code: 'digest_mismatch' },
		)
	}
	const document = review.files.find((file) => file.path === DOCUMENT)
	const shown = digestOfListing(review.files)
	if (shown !== review.digest || document?.sha256 !== sha256(review.markdown))
		throw new CliError(
			'conflict',
			'the digest does not match the files that the gateway shows; install the skill again',
		)
	if (!yes && (cli.out.json || !cli.ask.canAsk))
		throw new CliError(
			'usage',
			`this is not a terminal: give the --digest from the review (svc skills review ${agent} ${review.id}), or --yes`,
		)
	const texts = full ? await textsOf(cli, agent, review) : ''
	cli.out.write(`${reviewText(review, cli.out.style, full)}${texts}\n\n`)
	await consent(cli, { yes }, `Approve ${review.name} for ${agent}, as shown above?`)
	return shown
}

function found(list: Skill[], wanted: string): Skill {
	return pick(list, wanted, { kind: 'skill', id: (one) => one.id, names: (one) => [one.name] })
}
