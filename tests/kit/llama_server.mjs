// A real llama.cpp behind the part of the OpenAI protocol that the engines use, on loopback.
//
//   node llama_server.mjs MODEL.gguf [PORT]
//
// $ANIMAWORKS_TEST_LLAMA is the directory of the addon @fugood/llama.node. Prints "listening PORT" when it is
// ready; port 0 picks one.

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';

const addon = process.env.ANIMAWORKS_TEST_LLAMA;
if (!addon) {
  console.error('ANIMAWORKS_TEST_LLAMA is not set');
  process.exit(2);
}
const { loadModel } = createRequire(import.meta.url)(addon);
const [model, port = '0'] = process.argv.slice(2);
if (!model) {
  console.error('usage: node llama_server.mjs MODEL.gguf [PORT]');
  process.exit(2);
}
// its threads wait by spinning: on a busy machine one is faster than two
const threads = Number(process.env.ANIMAWORKS_TEST_THREADS ?? 1);
const context = await loadModel({ model, n_ctx: 8192, n_threads: threads, n_gpu_layers: 0 }, () => {});

// the addon is compiled for the oldest processor and reads 14 tokens a second: of a long system prompt it gets the end
const MOST_SYSTEM = 1500;

/** The conversation as gemma3 was taught it; the small base model brings no template of its own. */
function prompt(messages) {
  const text = (content) => (typeof content === 'string' ? content : content.map((part) => part.text ?? '').join(''));
  let system = messages.filter((m) => m.role === 'system').map((m) => text(m.content)).join('\n\n').slice(-MOST_SYSTEM);
  let out = '';
  for (const message of messages.filter((m) => m.role !== 'system')) {
    const role = message.role === 'assistant' ? 'model' : 'user';
    let words = text(message.content ?? '').trim();
    if (role === 'user' && system) {
      words = `${system}\n\n${words}`;
      system = '';
    }
    out += `<start_of_turn>${role}\n${words}<end_of_turn>\n`;
  }
  return `${out}<start_of_turn>model\n`;
}

// one context writes one answer at a time
let turn = Promise.resolve();

async function complete(body, response) {
  const id = `chatcmpl-${Date.now()}`;
  const head = { id, created: Math.floor(Date.now() / 1000), model: body.model };
  const send = (data) => response.write(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
  const chunk = (delta, finish_reason = null) =>
    send({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] });
  if (body.stream) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    chunk({ role: 'assistant', content: '' });
  }
  // a reader that leaves ends the work
  response.on('close', () => context.stopCompletion());
  const options = {
    prompt: prompt(body.messages),
    n_predict: body.max_completion_tokens ?? body.max_tokens ?? 256,
    temperature: body.temperature ?? 0.7,
    penalty_repeat: body.repeat_penalty ?? 1,
    seed: body.seed ?? 42,
    stop: ['<end_of_turn>', ...(body.stop ?? [])],
  };
  const result = await context.completion(options, (part) => {
    if (body.stream && part?.token) chunk({ content: part.token });
  });
  const { prompt_n, predicted_n, prompt_per_second, predicted_per_second } = result.timings;
  const speed = `speed: ${prompt_n} read at ${prompt_per_second.toFixed(1)}/s, ${predicted_n} written at ${predicted_per_second.toFixed(1)}/s`;
  console.log(speed);
  const finish = result.stopped_limit ? 'length' : 'stop';
  const usage = { prompt_tokens: prompt_n, completion_tokens: predicted_n, total_tokens: prompt_n + predicted_n };
  if (body.stream) {
    chunk({}, finish);
    if (body.stream_options?.include_usage) send({ ...head, object: 'chat.completion.chunk', choices: [], usage });
    send('[DONE]');
    response.end();
  } else {
    const message = { role: 'assistant', content: result.text };
    const choices = [{ index: 0, message, finish_reason: finish }];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }));
  }
}

function refuse(response, status, message) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { message, type: 'invalid_request_error' } }));
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  if (request.method === 'GET' && pathname === '/v1/models') {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ object: 'list', data: [{ id: path.basename(model), object: 'model' }] }));
    return;
  }
  if (request.method !== 'POST' || pathname !== '/v1/chat/completions') {
    refuse(response, 404, `no ${pathname} here`);
    return;
  }
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    let body;
    try {
      body = JSON.parse(Buffer.concat(parts).toString('utf8'));
    } catch (error) {
      refuse(response, 400, String(error));
      return;
    }
    turn = turn.then(() => complete(body, response)).catch((error) => {
      console.error(error);
      if (response.headersSent) response.destroy();
      else refuse(response, 500, String(error));
    });
  });
});
server.listen(Number(port), '127.0.0.1', () => console.log(`listening ${server.address().port}`));
