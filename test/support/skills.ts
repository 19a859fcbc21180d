/** Installs and approves skills over HTTP, as an operator does. */
import type { Answer, TestGateway } from './gateway.ts'

/** A skill's document. `head`: additional lines of the front matter. */
export function skillText(name: string, body: string, head = ''): string {
	return `---\nname: ${name}\ndescription: Does ${name}.\n${head === '' ? '' : `${head.trim()}\n`}---\n${body}\n`
}

/** The document of a skill with a program. `code`: the body of the default export, with `args` and `svc`. */
export function programText(name: string, code: string, head = ''): string {
	const program = code.includes('export default') ? code : `export default async (args, svc) => {\n${code}\n}`
	return skillText(name, `\`\`\`js\n${program}\n\`\`\``, `runtime: javascript\n${head}`)
}

/** Installs into quarantine, and returns the skill. */
export async function installSkill(
	gateway: Pick<TestGateway, 'request'>,
	agent: string,
	content: string,
): Promise<Answer> {
	const reply = await gateway.request('POST', `/v1/agents/${agent}/skills/install`, { body: { content } })
	if (reply.status !== 201) throw new Error(`not installed: ${reply.status} ${JSON.stringify(reply.body)}`)
	return reply.body
}

/** Installs, reviews and approves, and returns the skill. */
export async function addSkill(gateway: Pick<TestGateway, 'request'>, agent: string, content: string): Promise<Answer> {
	const { id } = await installSkill(gateway, agent, content)
	const { digest } = (await gateway.request('GET', `/v1/agents/${agent}/skills/${id}`)).body
	const reply = await gateway.request('POST', `/v1/agents/${agent}/skills/${id}/approve`, { body: { digest } })
	if (reply.status !== 200) throw new Error(`not approved: ${reply.status} ${JSON.stringify(reply.body)}`)
	return reply.body
}
