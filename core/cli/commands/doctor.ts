import { checksOf } from '../doctor/catalogue.ts'
import { examine } from '../doctor/doctor.ts'
import { textOf } from '../doctor/text.ts'
import { CliError } from '../contract.ts'
import type { Command } from '../command.ts'
import { answerTable } from '../lists.ts'

interface Options {
	only?: string[]
	list?: boolean
	fix?: boolean
	strict?: boolean
}

export default {
	options: {
		'--only <id...>': 'only these checks, or groups of checks such as store; separate several with spaces or commas',
		'--list': 'list the checks without running them',
		'--fix': 'fix what can be fixed without touching data: modes of files, leftovers of a killed gateway',
		'--strict': 'warnings count as errors',
	},
	examples: `
The doctor checks the home folder of SVC_HOME on this machine. If a gateway runs with it, the doctor asks that gateway, with the
token of svc login or SVC_TOKEN if it requires one. Exit code: 1 if there is an error, else 0.

Examples:
  svc doctor
  svc doctor --only provider.reachable,provider.model
  svc doctor --only upgrade
  svc doctor --fix
  svc doctor --json --strict
`,
	async run(cli, { only, list = false, fix = false, strict = false }: Options) {
		const all = await checksOf(cli)
		if (list) {
			const listed = all.map(({ id, about }) => ({ id, about }))
			return answerTable(cli, listed, '(none)', ({ id, about }) => ({ check: id, 'what it checks': about }))
		}
		const wanted = only?.flatMap((text) => text.split(',')).filter((text) => text !== '')
		const matches = (id: string, name: string): boolean => id === name || id.startsWith(`${name}.`)
		const unknown = wanted?.find((name) => !all.some(({ id }) => matches(id, name)))
		if (unknown !== undefined)
			throw new CliError('usage', `there is no check "${unknown}"; svc doctor --list shows them`)
		const { home, env } = cli
		using progress = cli.out.progress('Checking')
		const ids = wanted && all.flatMap(({ id }) => (wanted.some((name) => matches(id, name)) ? [id] : []))
		const report = await examine({ all, home, env, fix, ...(ids && { only: ids }) })
		progress.done()
		cli.out.answer(report, textOf)
		const { error, warning } = report.summary
		if (error > 0 || (strict && warning > 0)) throw new CliError('failed', '')
	},
} satisfies Command
