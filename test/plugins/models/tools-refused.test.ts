/** Operators can see which agents have their tools only as text in the prompt. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { chatCompletion, startScriptedModels } from '../../support/scripted-model.ts'

const message = "Invalid 'tools': array too long. Expected an array with maximum length 2."

void t.test('a server that refuses the tools of an agent causes an event, once for each thread', async (t) => {
	const models = await startScriptedModels()
	t.teardown(() => models.stop())
	const { url, requests } = models.add(({ body }) => {
		if (body.tools?.length > 2) return { status: 400, json: { error: { message, param: 'tools' } } }
		return chatCompletion({ content: 'Yes.' })
	})
	const gateway = await startGateway({
		config: `workers: {threads: 1}\nproviders:\n  lab: {kind: openai, base_url: '${url}', model: m}\n`,
	})
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const run_id = await ada.complete('Hello?')
	t.match((await ada.waitFor(run_id, 'model.tools_refused')).payload, {
		provider: 'lab',
		model: 'm',
		message: `400 ${message}`,
	})
	t.equal(requests.length, 2)
	const next = await ada.complete('And now?')
	t.equal(requests.length, 3)
	t.notOk(ada.typesOf(next).includes('model.tools_refused'))
})
